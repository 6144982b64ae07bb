"""Builds the entries that may enter an active memory set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from typing import NamedTuple
from uuid import UUID, uuid5
from zlib import crc32

from reverie.domain.context.active_set import ActiveSetEntry, ActiveSetLayer
from reverie.domain.context.text_rendering import LINE_CHARS, flatten_text, render_line
from reverie.domain.core.kinds import KIND_POLICIES, Kind, Tier
from reverie.domain.core.memory import Memory

WHOLE_CHARS = 1_600
"""A recalled memory is given whole up to this length: half a decision misleads."""
MAX_PER_SCOPE = 20
"""Limit of recalled memories per scope."""
RECENCY_HALF_LIFE_DAYS = 7.0
"""After so many days, what is neither pinned nor always needed weighs half as recent."""
MIN_RECENT_WEIGHT = 0.2
"""Least weight of a recent entry. A lighter decision is found if a turn is about it."""


class OnDemandHit(NamedTuple):
    """A memory for this turn: its score, why it is needed, and how surely it is relevant.

    `successor`: the memory that replaced or contradicts it.
    """

    memory: Memory
    score: float
    why: str
    relevance: float | None = None
    successor: UUID | None = None


def build_resident_entries(
    session: UUID, summaries: Iterable[tuple[str, str]], home_scope: str
) -> list[ActiveSetEntry]:
    """The lines of the summaries, each scope in turn, the session's own scope first."""
    ordered = sorted(summaries, key=lambda item: (item[0] != home_scope, item[0]))
    by_scope = [
        [_build_summary_entry(session, scope, line) for line in _iter_summary_lines(text)]
        for scope, text in ordered
    ]
    rounds = zip_longest(*by_scope)
    all_entries = (item for entries in rounds for item in entries if item is not None)
    return list({item.id: item for item in all_entries}.values())


def build_recent_entries(memories: Iterable[Memory], now: datetime) -> list[ActiveSetEntry]:
    """Builds entries from recent memories with priority, by weight, then newest first."""
    entries = [
        _build_memory_entry(item, ActiveSetLayer.RECENT, *_weigh_recency(item, now))
        for item in memories
    ]
    relevant = [item for item in entries if item.weight >= MIN_RECENT_WEIGHT]
    return sorted(relevant, key=lambda item: (-item.weight, -item.id.int))


def build_on_demand_entries(
    hits: Iterable[OnDemandHit],
    shorten_content: Callable[[str], str],
    chars: int = WHOLE_CHARS,
) -> list[ActiveSetEntry]:
    """Builds entries from recalled memories in their order, each once.

    At most 20 are from one scope. `shorten_content` cuts a content of more than `chars` characters
    to the part that answers the question.
    """
    per_scope: Counter[str] = Counter()
    entries: dict[UUID, ActiveSetEntry] = {}
    for hit in hits:
        memory = hit.memory
        if memory.id not in entries and per_scope[memory.scope] < MAX_PER_SCOPE:
            per_scope[memory.scope] += 1
            text = memory.summary or memory.content
            if len(memory.content) > chars:
                text = shorten_content(memory.content)
            entry = _build_memory_entry(
                memory, ActiveSetLayer.ON_DEMAND, min(hit.score, 1.0), hit.why, text, chars
            )
            entries[memory.id] = replace(entry, relevance=hit.relevance, successor=hit.successor)
    return list(entries.values())


def build_printed_entries(printed: Iterable[tuple[Memory, str]]) -> list[ActiveSetEntry]:
    """Builds entries from memories that a session start printed, each with its line.

    One whose line does not contain its whole text may still be given whole.
    """
    entries = (
        _build_memory_entry(memory, ActiveSetLayer.RECENT, 1.0, "session start", line=line)
        for memory, line in printed
    )
    return list(entries)


def _build_summary_entry(session: UUID, scope: str, text: str) -> ActiveSetEntry:
    line_text = flatten_text(text, LINE_CHARS)
    return ActiveSetEntry(
        id=uuid5(session, f"{scope}\n{text}"),
        layer=ActiveSetLayer.RESIDENT,
        line=f"- [{scope} summary] {line_text}",
        text=line_text.partition(": ")[2] or line_text,
        scope=scope,
        weight=1.0,
        reason="summary of its scope",
        fingerprint=0,
    )


def _iter_summary_lines(summary: str) -> Iterator[str]:
    """Yields the lines of a summary, each with the heading above it."""
    heading = ""
    for line in summary.splitlines():
        text = line.strip()
        if text.startswith("#"):
            heading = text.lstrip("# ").rstrip(":")
        elif text:
            text = text.removeprefix("- ")
            yield f"{heading}: {text}" if heading else text


def _build_memory_entry(
    memory: Memory,
    layer: ActiveSetLayer,
    weight: float,
    why: str,
    text: str | None = None,
    chars: int = LINE_CHARS,
    line: str | None = None,
) -> ActiveSetEntry:
    """The line of a memory; its fingerprint changes with its text, status and stale grade.

    It also differs for a text that was cut for want of room, so that the whole can follow.
    """
    text = memory.summary or memory.content if text is None else text
    line = render_line(memory, text, chars) if line is None else line
    is_whole = chars >= WHOLE_CHARS or any(
        flatten_text(whole, WHOLE_CHARS) in line for whole in (text, memory.content)
    )
    state = (memory.content_hash, memory.summary, memory.status.value, memory.stale_grade)
    return ActiveSetEntry(
        id=memory.id,
        layer=layer,
        line=line,
        text=flatten_text(text, chars),
        scope=memory.scope,
        weight=weight,
        reason=why,
        fingerprint=crc32(repr(state if is_whole else (*state, "cut")).encode()) & 0x7FFFFFFF,
        memory=memory,
    )


def _weigh_recency(memory: Memory, now: datetime) -> tuple[float, str]:
    """Priority by recency, 0..1, and why: what is pinned, of the identity or always needed stays
    fresh."""
    if memory.pinned:
        return 1.0, "pinned"
    policy = KIND_POLICIES[memory.kind]
    if memory.kind is Kind.IDENTITY:
        return 0.95, memory.kind.value
    if policy.tier is Tier.HOT or not policy.decays:
        return 0.9 * memory.confidence, memory.kind.value
    days = (now - memory.dates_from).total_seconds() / 86_400
    recency = 0.5 ** (max(days, 0.0) / RECENCY_HALF_LIFE_DAYS)
    return 0.9 * memory.confidence * recency, f"fresh {memory.kind.value}"
