"""Amendments: whether a decision record changes an older one of the same subject."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reverie.domain.extraction.wording import discourse_markers
from reverie.domain.extraction.wording.salience import extract_exact_terms
from reverie.domain.graph.duplicate_detection import ComparedMemory, compare_memories
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import split_sentences

MIN_SHARED_WORDS, MIN_SHARED_WITH_HINT = 0.4, 0.2
"""Two records have one subject if they share this much of the words of the shorter one. A name of
code in both, or "amendment to the … rule" with words of the older one, needs fewer."""
MIN_RESTATED_SHARE = 0.4
"""An amendment that has so much of the older record's words restates it."""
MAX_COMPARED_STATEMENTS = 12

_IN_FULL = re.compile(
    r"\bin full\b|\bsupersed(?:es?|ed|ing) the (?:original|old|earlier|previous)", re.I
)
_AMENDED_SUBJECT = re.compile(
    r"\b(?:amend\w*|supersed\w*|revis\w*|chang\w*|updat\w*|revers\w*)"
    r"(?: (?:to|of|for|the|our|that|last))+ (\w+(?:[ -]\w+){0,2}?)"
    r" (?:decision|rule|policy|plan|convention|choice|agreement|limit|setting)\b",
    re.I,
)
_LABEL = re.compile(r"^(?:Decided|Found|Answer|Done|Refused): ")
_CODE_NAME = re.compile(r"[._/:()]|[a-z][A-Z]|^[a-z]+\d")


@dataclass(frozen=True)
class Amendment:
    """Why a record amends another, and whether it takes its place in whole."""

    reason: str
    is_whole: bool


def find_amendment(record: Mapping[str, Any], older: str) -> Amendment | None:
    """Finds whether a record amends an older one of the same subject; None if it does not.

    `record`: as `DecisionRecord.parts`; `older`: the text of the other. They have the same subject
    if they share enough words, or fewer and a name of code, or fewer and it names the decision that
    it amends. It amends if it says so, or if it gives another value for the same thing. It amends
    in whole if it restates most of what the older one decided.
    """
    decided = [str(text) for text in record.get("decided", ())]
    newer = " ".join((str(record.get("problem", "")), *decided))
    done = " ".join(str(text) for text in record.get("found", ()))
    newer_words, older_words = content_words(newer), content_words(older)
    if not newer_words or not older_words:
        return None
    shared = len(newer_words & older_words) / min(len(newer_words), len(older_words))
    has_name = bool(_code_names(f"{newer} {done}") & _code_names(older))
    amended = _AMENDED_SUBJECT.search(newer)
    names_subject = amended and content_words(amended[1]) <= older_words
    if shared < (MIN_SHARED_WITH_HINT if has_name or names_subject else MIN_SHARED_WORDS):
        return None
    marker = discourse_markers.AMENDMENT.search(newer)
    reason = f"amends it: “{marker[0]}”" if marker else _find_changed_value(decided, older)
    if reason is None:
        return None
    restated = len(newer_words & older_words) / len(older_words)
    is_whole = restated >= MIN_RESTATED_SHARE or bool(_IN_FULL.search(newer))
    return Amendment(reason, is_whole)


def _code_names(text: str) -> frozenset[str]:
    return frozenset(name for name in extract_exact_terms(text) if _CODE_NAME.search(name))


def _find_changed_value(decided: Sequence[str], older: str) -> str | None:
    """The reason why a statement contradicts one of the older text by its value, if one does."""
    sentences = [s for line in older.splitlines() for s in split_sentences(_LABEL.sub("", line))]
    for statement in decided[:MAX_COMPARED_STATEMENTS]:
        for sentence in sentences[:MAX_COMPARED_STATEMENTS]:
            comparison = compare_memories(ComparedMemory(sentence), ComparedMemory(statement))
            if comparison.differs_by_value:
                return comparison.reason
    return None
