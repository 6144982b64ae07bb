"""Speaker of a memory that is one line of a conversation, and the people a question asks about.

People mostly report their own acts: in LoCoMo, 94 of 100 turns that answer a question about
somebody are by that person.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache

from reverie.domain.core.kinds import is_kind

OTHER_SPEAKER_FACTOR = 0.75
"""Factor of a line by another speaker than the person in the question."""
MIN_SPEAKER_LINES = 3
"""Least number of lines of a known speaker: `Note:` and `Redis:` begin notes."""
_MAX_NAME_LENGTH = 60
_MAX_LINE_LENGTH = 2_000
_NAME_WORD = r"[^\W\d_][\w.'’-]*"
_SPEAKER_LINE = re.compile(
    rf"^(?:\[[^\]\n]{{1,30}}\] ?)?\**({_NAME_WORD}(?: {_NAME_WORD}){{0,2}})\**:\**\s", re.M
)
_NOTE_LABELS = frozenset(
    {"answer", "cause", "note", "question", "reason", "result", "update", "why"}
)
"""Words besides the kinds that begin notes in the form of a line of conversation."""
_NO_NAMES: frozenset[str] = frozenset()
_WORD = re.compile(r"[^\W\d_][\w-]*")


def extract_people(question: str) -> frozenset[str]:
    """The words that a question writes large, as names are; its first word only as an owner's."""
    words = list(_WORD.finditer(question))
    is_possessive = question[words[0].end() :].startswith(("'s ", "’s ")) if words else False
    return frozenset(word[0] for word in words[0 if is_possessive else 1 :] if word[0][0].isupper())


def parse_speaker(text: str) -> frozenset[str]:
    """Parses the speaker of a text, `NAME: ...`; none if it has lines of other speakers."""
    may_be_line = len(text) <= _MAX_LINE_LENGTH and text.find(":", 0, _MAX_NAME_LENGTH) > 0
    match = _SPEAKER_LINE.match(text) if may_be_line else None
    if match is None:
        return _NO_NAMES
    label = match[1]
    if "\n" in text and any(
        line_match[1] != label and _parse_label(line_match[1])
        for line_match in _SPEAKER_LINE.finditer(text)
    ):
        return _NO_NAMES
    return _parse_label(label)


def find_speakers(texts: Iterable[str], names: Collection[str]) -> frozenset[str]:
    """Returns which of `names` speak at least `MIN_SPEAKER_LINES` of the texts."""
    if not names:
        return _NO_NAMES
    lines = Counter(name for text in texts for name in parse_speaker(text) if name in names)
    return frozenset(name for name, line_count in lines.items() if line_count >= MIN_SPEAKER_LINES)


def compute_speaker_factor(text: str, people: Collection[str]) -> float:
    """Computes the factor of a text: less than 1 if another person than `people` speaks it."""
    speakers = parse_speaker(text)
    return OTHER_SPEAKER_FACTOR if speakers and speakers.isdisjoint(people) else 1.0


@lru_cache(256)
def _parse_label(label: str) -> frozenset[str]:
    """The words of a label, if it is a name."""
    is_capitalized = all(word[0].isupper() for word in label.split())
    is_note = is_kind(label) or label.lower() in _NOTE_LABELS
    return frozenset(_WORD.findall(label)) if is_capitalized and not is_note else _NO_NAMES
