"""Wording of a record's text: what it names, what it tells already, and how parts are joined."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.extraction.record_validation import read_content_words
from reverie.domain.extraction.records.record_statements import ANAPHOR, LEAD
from reverie.domain.extraction.wording.salience import extract_exact_terms
from reverie.domain.text.markdown import split_sentences, without_code

MIN_NEW_SHARE = 0.4
"""Share of the words of a request that the result does not tell, so that it is shown."""
# What a commit did is told by the commit.
COMMIT_ID = re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b|`[0-9a-f]{7,40}`")
_REFUSED = re.compile(r", not (?:an? |the )?(\w+)|\b(?:instead of|rather than) (\w+)")
# "Before that fix": what was named before.
_DEMONSTRATIVE = re.compile(
    r"(?:^|[,;—] |\b(?:before|after|with|of|for|in|to|on|by|from|at|is|was|like|about|than|into) )"
    r"that\b",
    re.I,
)
# "The fix made it slower": which one?
_DEFINITE = re.compile(
    r"\b(?:the|that|this|those) (fix|change|commit|shift|discussion|cleanup|migration"
    r"|refactor(?:ing)?)\b(?! (?:is|was|to|that)\b|:)",
    re.I,
)
_MID_TALK = re.compile(
    r"^(?:About [^:]+: )?(?:not just|and|but|so|or|especially|mostly|then)\b", re.I
)
_PRONOUN = re.compile(r"\b(?:its?|they|them)\b", re.I)
_ENDED = re.compile(r"(?:[.!?:;。！？；]|```)$")
_LABELLED_CODE = re.compile(r"^(\w+:) ```", re.M)
_CODE_LEAD = re.compile(r"[^\n`]{3,140}:\n(?=```)")
_AFTER_CODE = re.compile(r"(?<=\n)``` ")


def names_subject_first(text: str) -> bool:
    """Whether the beginning of a text names something before it points to anything."""
    first = next(iter(split_sentences(text)), "")
    start = _find_first_name(first)
    opening = first[:start]
    return start < len(first) and not (ANAPHOR.search(opening) or _DEMONSTRATIVE.search(opening))


def _find_first_name(sentence: str) -> int:
    """The place of the first name in a sentence; its end if there is none."""
    names = {*extract_exact_terms(sentence), *(path.lower() for path in extract_paths(sentence))}
    named = (name for name in names if not COMMIT_ID.fullmatch(f"`{name}`"))
    found = (n for n in map(sentence.lower().find, named) if n >= 0)
    return min(found, default=len(sentence))


def depends_on_context(text: str) -> bool:
    """Whether the text of an answer names something that was told before it only."""
    told = (m for m in _DEFINITE.finditer(text) if m[1].lower() not in text[: m.start()].lower())
    answer = without_code(text.rpartition("Answer: ")[2])
    first = next(iter(split_sentences(answer)), "")
    return any(told) or bool(_MID_TALK.search(text) or _DEMONSTRATIVE.search(first, 1))


def adds_information(text: str, other: str) -> bool:
    """Whether another text lacks many of the words of a text, or what it refuses."""
    words = read_content_words(text)
    refused = _REFUSED.search(text)
    is_named = any(re.search(r"^/\w", w) and w not in other for w in text.rstrip(".").split())
    return (
        is_named
        or bool(refused and refused[refused.lastindex or 0].lower() not in other.lower())
        or len(words - read_content_words(other)) > MIN_NEW_SHARE * len(words)
    )


def drop_covered_sentences(text: str, other: str) -> str:
    """A text without the sentences that another text holds; code stays."""
    prose = without_code(text)
    uncovered = [s for s in split_sentences(prose) if s not in other]
    return " ".join(uncovered) + text[len(prose) :] if text.startswith(prose) else text


def names_its_subject(sentence: str) -> bool:
    """Whether a sentence says by itself what it is about: "it" may mean what it named before."""
    start = _find_first_name(sentence)
    unnamed = sentence[:start] + _PRONOUN.sub("", sentence[start:])
    return start < len(sentence) and not ANAPHOR.search(unnamed)


def render_lines(lines: Iterable[str]) -> str:
    """Lines as one text; code begins on a line of its own."""
    return _LABELLED_CODE.sub(r"\1\n```", "\n".join(filter(None, lines)))


def join_sentences(texts: Iterable[str]) -> str:
    """Joins statements; of neighbours with the same heading, only the first keeps it."""
    joined: list[str] = []
    lead = ""
    for text in filter(None, texts):
        match = LEAD.match(text) or _CODE_LEAD.match(text)
        if match and match[0].rstrip() == lead.rstrip():
            after_code = joined[-1].endswith("```")
            mark = "\n" if after_code else "; "
            joined[-1] = f"{joined[-1].rstrip('.;')}{mark}{text[len(match[0]) :]}"
        else:
            joined.append(text)
        lead = match[0] if match else ""
    ended = (t if _ENDED.search(t) else f"{t}." for t in joined)
    return _AFTER_CODE.sub("```\n", " ".join(ended))
