"""Segmentation of a session into topics, without a language model.

A boundary is possible only before a user request. It is set if a slash command or another ticket
begins, after a long pause, or if the windows before and after are dissimilar. Windows are compared
by their vectors if a model is set, else by words as in TextTiling (Hearst, Computational
Linguistics 23(1), 1997). Measured: benchmarks/quality/topic_segmentation.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, pairwise
from math import sqrt
from statistics import fmean, pstdev

from reverie.domain.extraction.wording import discourse_markers
from reverie.domain.text.characters import word_set
from reverie.domain.text.index_terms import index_text
from reverie.domain.text.normalization import cache_by_text
from reverie.domain.text.turns import TurnText

LONG_PAUSE = timedelta(minutes=45)
MAX_TURNS = 80
MAX_CHARS = 40_000
WINDOW_CHARS = 2_000
# A shorter message never opens a topic, unless it is a command.
MIN_OPENING_CHARS = 24
# Below this cosine two windows share hardly a word; above the other they are one topic.
MIN_CUTOFF, MAX_CUTOFF = 0.15, 0.30
# Below this cosine two windows are about different things.
MIN_TOPIC_COSINE = 0.70
# Characters of a window's text that are embedded.
WINDOW_TEXT_CHARS = 600

COMMAND_MESSAGE = re.compile(r"\s*(?:<command-(?:name|message)>|/[a-z][\w-]+(?:\s|$))")
NOISE_MESSAGE = re.compile(
    r"\s*(?:<local-command|<command-name>/(?:exit|quit|clear|compact|help|model|cost|login"
    r"|resume)\b"
    r"|\[Request interrupted|<system-reminder>|Caveat:|\[recalled memory left out\]|$)"
)
_CJK_CHAR = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_TICKET = re.compile(r"(?:\b[A-Z]{2,10}-\d+\b|(?<!\w)#\d+\b|/(?:issues|pull)/\d+)")
_STOP_WORDS = word_set(
    """the and for that this with you are was not but have has its from into will can all now
    let use our your should would there here then than also what when which"""
)


@dataclass(frozen=True)
class TopicSegment:
    """A run of turns about one thing, never empty."""

    turns: tuple[TurnText, ...]


Vector = Sequence[float]


def build_windows(turns: Sequence[TurnText]) -> list[str]:
    """Builds the texts whose vectors separate topics: one per possible start of a topic."""
    ordered = sorted(turns, key=lambda turn: turn.ordinal)
    starts = [0, *_find_candidate_cuts(ordered)]
    windows: list[str] = []
    for start, stop in pairwise([*starts, len(ordered)]) if ordered else ():
        messages = (turn.content for turn in ordered[start:stop] if turn.role != "tool")
        text = " ".join(content[: WINDOW_TEXT_CHARS // 2] for content in messages)
        windows.append(text[:WINDOW_TEXT_CHARS])
    return windows


def segment_turns(
    turns: Sequence[TurnText], vectors: Sequence[Vector] | None = None
) -> list[TopicSegment]:
    """The turns of one session, in order of `ord`, cut at topic boundaries.

    `vectors`: of `build_windows`, of length one; without them words decide. Every turn is in
    exactly one segment; no segment is longer than `MAX_TURNS` turns, nor, unless it is a single
    turn, than `MAX_CHARS` characters.
    """
    ordered = sorted(turns, key=lambda turn: turn.ordinal)
    if not ordered:
        return []
    starts = [0, *_find_boundaries(ordered, vectors), len(ordered)]
    spans = [ordered[a:b] for a, b in pairwise(starts)]
    return [TopicSegment(tuple(part)) for span in spans for part in _split_oversized(span)]


def is_request(turn: TurnText) -> bool:
    """Returns whether a user's turn has content of its own: not a yes, not a wrapper."""
    if (
        turn.role != "user"
        or NOISE_MESSAGE.match(turn.content)
        or discourse_markers.ASSENT.match(turn.content)
    ):
        return False
    return (
        bool(COMMAND_MESSAGE.match(turn.content))
        or len(turn.content.split()) >= 3
        or len(_CJK_CHAR.findall(turn.content)) >= 4
    )


def _find_candidate_cuts(turns: Sequence[TurnText]) -> list[int]:
    """Finds the positions at which a topic may begin."""
    request_indexes = (index for index, turn in enumerate(turns) if index and is_request(turn))
    return [index for index in request_indexes if not _is_continuation(turns, index)]


def _find_boundaries(turns: list[TurnText], vectors: Sequence[Vector] | None) -> list[int]:
    candidates = _find_candidate_cuts(turns)
    if vectors is not None and len(vectors) == len(candidates) + 1:
        topic_changes = [
            _window_cosine(vectors, n) < MIN_TOPIC_COSINE for n in range(1, len(vectors))
        ]
    else:
        cohesion = [_compute_cohesion(turns, index) for index in candidates]
        cutoff = fmean(cohesion) - pstdev(cohesion) / 2 if cohesion else 0.0
        cutoff = min(max(cutoff, MIN_CUTOFF), MAX_CUTOFF)
        topic_changes = [score < cutoff for score in cohesion]
    # For each turn, the tickets that the turns before it name.
    tickets = (frozenset(_TICKET.findall(turn.content[:WINDOW_CHARS])) for turn in turns)
    earlier_tickets = list(accumulate(tickets, frozenset.union, initial=frozenset[str]()))
    return [
        index
        for index, is_change in zip(candidates, topic_changes, strict=True)
        if is_change or _is_hard_boundary(turns, index, earlier_tickets[index])
    ]


def _window_cosine(vectors: Sequence[Vector], n: int) -> float:
    """The cosine of a window and the two before it together."""
    previous = [sum(values) for values in zip(*vectors[max(0, n - 2) : n], strict=True)]
    norm = sqrt(sum(value * value for value in previous))
    return sum(a * b for a, b in zip(previous, vectors[n], strict=True)) / norm if norm else 1.0


def _is_continuation(turns: Sequence[TurnText], index: int) -> bool:
    """Returns whether a turn is a command's text or a short remark, refuses what was proposed, or
    follows an interruption."""
    previous = turns[index - 1]
    if previous.role == "assistant" and discourse_markers.REFUSAL.match(turns[index].content):
        return turns[index].at - previous.at < LONG_PAUSE
    if previous.role == "user" and (
        COMMAND_MESSAGE.match(previous.content) or NOISE_MESSAGE.match(previous.content)
    ):
        return turns[index].at - previous.at < LONG_PAUSE
    return len(turns[index].content) < MIN_OPENING_CHARS and not COMMAND_MESSAGE.match(
        turns[index].content
    )


def _is_hard_boundary(turns: list[TurnText], index: int, earlier_tickets: frozenset[str]) -> bool:
    """`earlier_tickets`: the tickets that were named until then."""
    if (
        COMMAND_MESSAGE.match(turns[index].content)
        or turns[index].at - turns[index - 1].at >= LONG_PAUSE
    ):
        return True
    tickets = set(_TICKET.findall(turns[index].content[:400]))
    return bool(tickets and earlier_tickets and not tickets & earlier_tickets)


def _compute_cohesion(turns: list[TurnText], index: int) -> float:
    before = _count_window_words(reversed(turns[:index]))
    after = _count_window_words(turns[index:])
    dot = sum(count * after[word] for word, count in before.items())
    norm = sqrt(sum(c * c for c in before.values()) * sum(c * c for c in after.values()))
    return dot / norm if norm else 0.0


def _count_window_words(turns: Iterable[TurnText]) -> Counter[str]:
    words: Counter[str] = Counter()
    size = 0
    for turn in turns:
        text = turn.content[:WINDOW_CHARS]
        words.update(_count_words(text))
        size += len(text)
        if size >= WINDOW_CHARS:
            break
    return words


@cache_by_text
def _count_words(text: str) -> Counter[str]:
    """Kept, for neighbouring windows share most of their turns."""
    words = index_text(text).split()
    return Counter(word for word in words if len(word) > 2 and word not in _STOP_WORDS)


def _split_oversized(turns: list[TurnText]) -> list[list[TurnText]]:
    """Halves what is too long at its weakest place in the middle half, until it fits."""
    size = sum(len(turn.content) for turn in turns)
    if len(turns) == 1 or (len(turns) <= MAX_TURNS and size <= MAX_CHARS):
        return [turns]
    low, high = max(1, len(turns) // 4), max(2, len(turns) * 3 // 4)
    candidates = [index for index in range(low, high) if turns[index].role != "tool"] or list(
        range(low, high)
    )
    weakest = min(candidates, key=lambda index: (_compute_cohesion(turns, index), index))
    return [*_split_oversized(turns[:weakest]), *_split_oversized(turns[weakest:])]
