"""Keywords of a message, used to recall memories before an agent answers."""

from __future__ import annotations

from reverie.domain.retrieval.question_parsing import ParsedQuestion
from reverie.domain.text.characters import word_set
from reverie.domain.text.index_terms import query_text
from reverie.domain.text.memory_fence import strip_fenced

MAX_QUERY_CHARS = 2_000
"""Of a longer message, its beginning and end are asked by: between them stands what is pasted."""
MAX_KEYWORDS = 24

_STOP_WORDS = word_set(
    """
    a about after all also am an and any are as at be because been before but by can could did
    do does doing done for from get give go had has have he hello help her here hi how i if in
    into is it its just know let like make may me might more my need new next no not now of ok
    on or our out over please say see she should show so some sure tell than thank thanks that
    the their them then there these they this those to too try up us use want was we were what
    when where which who why will with would yes you your
    """
)


def extract_query(message: str) -> str:
    """What a message asks: less the recalled memory in it, and less the middle of a long one."""
    query = strip_fenced(message).strip()
    if len(query) <= MAX_QUERY_CHARS:
        return query
    half = MAX_QUERY_CHARS // 2
    return f"{query[:half]}\n{query[-half:]}"


def extract_keywords(text: str, question: ParsedQuestion) -> list[str]:
    """Paths, identifiers and phrases as written, then the telling words; at most 24."""
    exact_terms = [*question.paths, *question.identifiers, *question.phrases]
    exact_words = set(query_text(" ".join(exact_terms)).split())
    words = [
        word
        for word in query_text(text).split()
        if word not in exact_words and _is_distinctive(word)
    ]
    return list(dict.fromkeys([*exact_terms, *words]))[:MAX_KEYWORDS]


def _is_distinctive(word: str) -> bool:
    return len(word) > (2 if word.isascii() else 1) and word not in _STOP_WORDS
