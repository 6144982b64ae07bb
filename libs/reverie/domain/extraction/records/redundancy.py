"""What a record tells twice: the sentences that say again what is told before them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.domain.extraction.record_validation import read_content_words
from reverie.domain.extraction.wording import discourse_markers
from reverie.domain.extraction.wording.proofreading import drop_adverbs
from reverie.domain.extraction.wording.salience import extract_exact_terms
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import split_sentences, without_code

MIN_NOVEL_SHARE, MIN_NOVEL_SHARE_OF_NAMED = 0.3, 0.52
"""A sentence that has fewer new stems, and no new name or figure, repeats what is told.

So does one that names two things or more, all of them named before, with more new stems. One that
denies something repeats nothing as long as it has a new stem.
"""
MIN_NOVEL_STEMS_OF_NAMED = 2
MAX_ANNOUNCEMENT_WORDS = 8

_FIGURE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
# Who begins with "Not that" answers a proposal.
_DENIED = re.compile(r"(?!^)\b(?:not|never|no|only|without)\b|n['’]t\b|[不没无]", re.I)


def drop_repeated_sentences(texts: Sequence[str], refused: str = "") -> list[str]:
    """The texts without the sentences that repeat what is told before them; "" if nothing is left.

    A sentence on which the next one leans stays. What was refused is told after them: its names
    are no news, and its words and figures are, as what was decided may be in the same words.
    """
    words, told = frozenset[str](), ""
    kept_texts: list[str] = []
    for text in _drop_announcement(texts):
        text = drop_adverbs(text)
        prose = without_code(text)
        sentences = split_sentences(prose) if text.startswith(prose) else [text]
        kept: list[str] = []
        for sentence, following in zip(sentences, [*sentences, ""][1:], strict=True):
            figures = set(_FIGURE.findall(sentence))
            is_counted = figures <= set(_FIGURE.findall(told))
            if len(figures) > 1 and is_counted:
                continue
            own = read_content_words(sentence)
            is_new = not is_counted or _is_new(sentence, own, words, told + refused.lower())
            if is_new or discourse_markers.ANAPHORIC_START.match(following):
                kept.append(sentence)
            words, told = words | own, f"{told} {sentence.lower()}"
        code = text[len(prose) :] if text.startswith(prose) else ""
        kept_texts.append(text if len(kept) == len(sentences) else " ".join(kept) + code)
    return kept_texts


def _is_new(sentence: str, own: frozenset[str], words: frozenset[str], earlier: str) -> bool:
    """Whether a sentence names, denies or tells what those of `earlier` do not."""
    names = extract_exact_terms(sentence)
    # A figure may be told with its unit, a name in brackets, and names in another order.
    untold = [n for n in names if n not in earlier and n[:1] != " "]
    opens_code = sentence.endswith((":", "：")) and not names
    if opens_code or any(" " not in n or not read_content_words(n) <= words for n in untold):
        return True
    if _DENIED.search(sentence):
        return not own <= words
    share = MIN_NOVEL_SHARE_OF_NAMED if len(names) > 1 else MIN_NOVEL_SHARE
    least = MIN_NOVEL_STEMS_OF_NAMED if names else 0
    return len(own - words) >= max(share * len(own), least)


def _drop_announcement(texts: Sequence[str]) -> list[str]:
    """Without a first sentence that names no more than what the statements after it tell."""
    first, *rest = texts or [""]
    is_short = rest and len(first.split()) <= MAX_ANNOUNCEMENT_WORDS
    named = {word for word in content_words(first) if len(word) > 3}
    if is_short and named <= content_words(" ".join(rest)):
        first = ""
    return [first, *rest] if texts else []
