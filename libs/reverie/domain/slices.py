"""Cutting a session where its topic changes, without a language model.

A cut is considered only before a turn in which the user asks for something. It is made where
a slash command or another ticket begins, where time has passed, and where what was said before
and after has little in common: in meaning, by the vectors of neighbouring windows, where there is a
model; else in words, as in TextTiling (Hearst, "TextTiling: Segmenting Text into Multi-paragraph
Subtopic Passages", Computational Linguistics 23(1), 1997), with its cut-off, mean minus half the
deviation. Measured: tests/bench/slices.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from math import sqrt
from statistics import fmean, pstdev

from reverie.domain import cues
from reverie.domain.keeping import Keeping
from reverie.domain.turns import TurnText
from reverie.domain.words import index_text

LONG_PAUSE = timedelta(minutes=45)
MAX_TURNS = 80
MAX_CHARS = 40_000
WINDOW = 2_000
# A shorter message never opens a topic, unless it is a command.
SHORT = 24
# Below this cosine two windows share hardly a word; above the other they are one topic.
STRANGERS, KIN = 0.15, 0.30
# Below this cosine two windows are about different things.
NEAR = 0.70
# Characters of a window's text that its vector is made of.
TEXT = 600

COMMAND = re.compile(r"\s*(?:<command-(?:name|message)>|/[a-z][\w-]+(?:\s|$))")
NOISE = re.compile(
    r"\s*(?:<local-command|<command-name>/(?:exit|quit|clear|compact|help|model|cost|login"
    r"|resume)\b"
    r"|\[Request interrupted|<system-reminder>|Caveat:|\[recalled memory left out\]|$)"
)
_TICKET = re.compile(r"(?:\b[A-Z]{2,10}-\d+\b|(?<!\w)#\d+\b|/(?:issues|pull)/\d+)")
_STOP = frozenset(
    {
        "the",
        "and",
        "for",
        "that",
        "this",
        "with",
        "you",
        "are",
        "was",
        "not",
        "but",
        "have",
        "has",
        "its",
        "from",
        "into",
        "will",
        "can",
        "all",
        "now",
        "let",
        "use",
        "our",
        "your",
        "should",
        "would",
        "there",
        "here",
        "then",
        "than",
        "also",
        "what",
        "when",
        "which",
    }
)


@dataclass(frozen=True)
class Slice:
    """A run of turns about one thing, never empty."""

    turns: tuple[TurnText, ...]


Vector = Sequence[float]


def windows(turns: Sequence[TurnText]) -> list[str]:
    """The texts whose vectors tell topics apart: one from each place where a topic may begin."""
    ordered = sorted(turns, key=lambda turn: turn.ord)
    starts = [0, *_places(ordered)]
    spans = pairwise([*starts, len(ordered)])
    return [_text(ordered[a:b]) for a, b in spans] if ordered else []


def slice_turns(turns: Sequence[TurnText], vectors: Sequence[Vector] | None = None) -> list[Slice]:
    """The turns of one session, in order of `ord`, cut at topic boundaries.

    `vectors`: of `windows`, of length one; without them words decide. Every turn is in exactly one
    slice; no slice is longer than `MAX_TURNS` turns, nor, unless it is a single turn, than
    `MAX_CHARS` characters.
    """
    ordered = sorted(turns, key=lambda turn: turn.ord)
    if not ordered:
        return []
    starts = [0, *_boundaries(ordered, vectors), len(ordered)]
    spans = [ordered[a:b] for a, b in pairwise(starts)]
    return [Slice(tuple(part)) for span in spans for part in _bounded(span)]


def is_request(turn: TurnText) -> bool:
    """Whether a user's turn asks or says something of its own: not yes, not a wrapper."""
    if turn.role != "user" or NOISE.match(turn.content) or cues.ASSENT.match(turn.content):
        return False
    return bool(COMMAND.match(turn.content)) or len(turn.content.split()) >= 3 or _cjk(turn.content)


def _cjk(text: str) -> bool:
    return len(re.findall(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]", text)) >= 4


def _places(turns: Sequence[TurnText]) -> list[int]:
    """Where a topic may begin."""
    asked = (i for i, turn in enumerate(turns) if i and is_request(turn))
    return [i for i in asked if not _continues(turns, i)]


def _boundaries(turns: list[TurnText], vectors: Sequence[Vector] | None) -> list[int]:
    places = _places(turns)
    if vectors is not None and len(vectors) == len(places) + 1:
        apart = [_meaning(vectors, n) < NEAR for n in range(1, len(vectors))]
    else:
        cohesion = [_cohesion(turns, i) for i in places]
        cut = _cut_off(cohesion)
        apart = [one < cut for one in cohesion]
    named = _named_before(turns)
    return [i for i, far in zip(places, apart, strict=True) if far or _hard(turns, i, named[i])]


def _meaning(vectors: Sequence[Vector], n: int) -> float:
    """The cosine of a window and the two before it together."""
    before = [sum(values) for values in zip(*vectors[max(0, n - 2) : n], strict=True)]
    norm = sqrt(sum(value * value for value in before))
    return sum(a * b for a, b in zip(before, vectors[n], strict=True)) / norm if norm else 1.0


def _text(turns: Sequence[TurnText]) -> str:
    said = (turn.content[: TEXT // 2] for turn in turns if turn.role != "tool")
    return " ".join(said)[:TEXT]


def _continues(turns: Sequence[TurnText], i: int) -> bool:
    """A command's own text, a word thrown in, what is said after stopping the agent."""
    before = turns[i - 1]
    if before.role == "user" and (COMMAND.match(before.content) or NOISE.match(before.content)):
        return turns[i].at - before.at < LONG_PAUSE
    return len(turns[i].content) < SHORT and not COMMAND.match(turns[i].content)


def _hard(turns: list[TurnText], i: int, before: frozenset[str]) -> bool:
    """`before`: the tickets that were named until then."""
    if COMMAND.match(turns[i].content) or turns[i].at - turns[i - 1].at >= LONG_PAUSE:
        return True
    named = set(_TICKET.findall(turns[i].content[:400]))
    return bool(named and before and not named & before)


def _named_before(turns: Iterable[TurnText]) -> list[frozenset[str]]:
    """For each turn, the tickets that the turns before it name."""
    found = [frozenset[str]()]
    for turn in turns:
        fresh = set(_TICKET.findall(turn.content[:WINDOW])) - found[-1]
        found.append(found[-1] | fresh if fresh else found[-1])
    return found


def _cut_off(values: list[float]) -> float:
    if not values:
        return 0.0
    return min(max(fmean(values) - pstdev(values) / 2, STRANGERS), KIN)


def _cohesion(turns: list[TurnText], i: int) -> float:
    before = _window(reversed(turns[:i]))
    after = _window(turns[i:])
    return _cosine(before, after)


def _window(turns: Iterable[TurnText]) -> Counter[str]:
    words: Counter[str] = Counter()
    size = 0
    for turn in turns:
        text = turn.content[:WINDOW]
        words.update(_counted(text))
        size += len(text)
        if size >= WINDOW:
            break
    return words


@Keeping
def _counted(text: str) -> Counter[str]:
    """Kept, for neighbouring windows share most of their turns."""
    words = index_text(text).split()
    return Counter(word for word in words if len(word) > 2 and word not in _STOP)


def _cosine(one: Counter[str], two: Counter[str]) -> float:
    dot = sum(count * two[word] for word, count in one.items())
    norm = sqrt(sum(c * c for c in one.values()) * sum(c * c for c in two.values()))
    return dot / norm if norm else 0.0


def _bounded(turns: list[TurnText]) -> list[list[TurnText]]:
    """Halves what is too long at its weakest place in the middle half, until it fits."""
    size = sum(len(turn.content) for turn in turns)
    if len(turns) == 1 or (len(turns) <= MAX_TURNS and size <= MAX_CHARS):
        return [turns]
    low, high = max(1, len(turns) // 4), max(2, len(turns) * 3 // 4)
    places = [i for i in range(low, high) if turns[i].role != "tool"] or list(range(low, high))
    weakest = min(places, key=lambda i: (_cohesion(turns, i), i))
    return [*_bounded(turns[:weakest]), *_bounded(turns[weakest:])]
