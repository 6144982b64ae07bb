"""A statement of a conversation that may enter a record, and what its words tell of it."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.extraction.wording.proofreading import capitalize
from reverie.domain.extraction.wording.salience import extract_exact_terms
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.turns import TurnText

RULES = "rules"
"""What wrote a record or statement that no language model wrote."""
RULE_SCORE = 4.0
"""The least rating of a sentence that states a rule or a preference by its own words."""
MIN_SCORE = 1.6
"""Statements below are not worth their room."""
MIN_STATEMENT_BYTES = 24
"""Eight Chinese characters say as much as a few English words."""

_OPENING_WORDS = re.compile(
    r"^(?:(?:got it|understood|ok(?:ay)?|right|noted|makes sense|agreed|sure|done|perfect"
    r"|excellent|great|yes|yup|no|nope|careful|hold on|wait|exactly|correct|well|so|and|but|also"
    r"|hmm|heads up|ah|oh|i see|that makes sense|good (?:point|to know)"
    r"|(?:hey|hi|hello)(?: [@\[`]?\w+[`\]]?){0,2}|yeah|yep|oh man|ha|gotcha|absolutely|totally"
    r"|definitely|honestly|actually|interesting"
    r"|(?:one|two|three|a few|some) corrections?)\s*[,.:;!—–-]+\s*)+"
    r"|^(?:a few|some|two|three|a couple(?: of)?) (?:more |other )?"
    r"(?:preferences|things|rules|notes|points)\b[^:.]{0,40}:\s*"
    r"|^(?:so|and|but|also)\s+|^\(?\d[.)]\s+",
    re.I,
)
ANAPHOR = re.compile(
    r"\b(?:this|these|those(?! (?:of|who|which)\b)|them|they|its|it|here"
    r"|(?<!is )(?<!was )(?<!are )there(?! (?:is|are)|'s)"
    r"|the (?:exact|same) \w+ again|(?<!\w )that(?! \w+ (?:we|you|i)\b))\b",
    re.I,
)
LEAD = re.compile(r"(?:`[^`]*`|[^`:;.]|[:.](?=\S)){3,140}: (?=\S)")
"""The heading in front of a statement."""
DECIDED_KINDS = frozenset({Kind.DECISION, Kind.CONVENTION, Kind.PREFERENCE, Kind.TASK, Kind.LESSON})
OWN_MEMORY_KINDS = frozenset({Kind.TASK, Kind.SKILL, Kind.IDENTITY})
"""A task has a state of its own; a command, and who somebody is, is looked up by itself."""


@dataclass(frozen=True)
class RecordStatement:
    """A statement of a record, the turn that makes it, and its weight.

    `is_own_memory`: it is a memory of its own. `produced_by`: as in `ExtractedMemory`.
    """

    text: str
    turn: TurnText
    score: float
    kind: Kind
    is_decided: bool
    is_recap: bool = False
    is_own_memory: bool = False
    produced_by: str = RULES

    @property
    def is_change(self) -> bool:
        """Whether it tells what was changed."""
        text = self.text.partition(": ")[2] if LEAD.match(self.text) else self.text
        changed = discourse_markers.COMPLETED_CHANGE.match(text)
        return not self.is_decided and bool(
            (changed and not changed[0].endswith("s"))
            or sentence_patterns.DONE_HEADING.match(self.text)
        )

    @property
    def is_finding(self) -> bool:
        """Whether it tells what was found out."""
        return not self.is_decided and not self.is_change

    @cached_property
    def words(self) -> frozenset[str]:
        """Its words as they are indexed."""
        return content_words(self.text)

    @cached_property
    def exact_terms(self) -> frozenset[str]:
        """The names, figures and quoted words in it."""
        return extract_exact_terms(self.text)


def strip_line_places(text: str) -> str:
    """Without the numbers of lines, which do not hold after the next change."""
    return sentence_patterns.LINE_PLACE.sub(lambda m: m["extension"] or "", text).strip()


def strip_opening(sentence: str) -> str:
    text = _OPENING_WORDS.sub("", sentence).strip()
    return text if text == sentence.strip() else capitalize(text)


def rate_detail(text: str) -> float:
    return (
        min(len(discourse_markers.NORMATIVE.findall(text)), 4) * 0.4
        + min(len(extract_exact_terms(text)), 4) * 0.3
    )


def is_near_duplicate(first: AbstractSet[str], second: AbstractSet[str]) -> bool:
    shared, smaller = len(first & second), min(len(first), len(second))
    return smaller > 0 and (shared / len(first | second) >= 0.65 or shared / smaller >= 0.88)
