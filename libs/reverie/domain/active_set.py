"""The active memory set of a session: what its agent should have before it now. Pure.

Three layers, each with a budget of tokens: resident (the summaries of scopes, line by line), recent
(what has priority, as far as it is fresh) and on demand (what was recalled for this turn). Of what
was chosen, only what the session was not given yet is rendered. What it was given is remembered;
where that grows too long, what weighs least by priority and recency is forgotten, and may be given
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import zip_longest
from uuid import UUID, uuid5
from zlib import crc32

from reverie.domain.context import HEADING
from reverie.domain.fence import harmless, wrap
from reverie.domain.ids import short_id
from reverie.domain.kinds import TREATMENT, Kind, Tier
from reverie.domain.memory import Memory, Status

Count = Callable[[str], int]


class Layer(StrEnum):
    """Why something is in the set: it stands, it weighs, or it was asked for."""

    RESIDENT = "resident"
    RECENT = "recent"
    ON_DEMAND = "on_demand"


HEADINGS = {
    Layer.RESIDENT: "**Where things stand**",
    Layer.RECENT: "**What to keep in mind**",
    Layer.ON_DEMAND: "**For this turn**",
}
TITLE = f"{HEADING}\n\n### Memory"
LINE_CHARS = 400
REASON_CHARS = 160
LEAST_LINE = 8
"""Tokens that no line takes less than: its source alone takes more."""
MOST_MISFITS = 8
"""After so many lines that were too long for what is left of a budget, no more are tried."""
PER_SCOPE = 20
"""How many recalled memories of one scope may enter."""
MOST_GIVEN = 400
"""How many things given to a session are remembered."""
RECENCY_TURNS = 10.0
"""After so many turns out of the set, what was given weighs half."""
FRESH_DAYS = 7.0
"""After so many days, what is neither pinned nor always needed weighs half as recent."""
LEAST_WEIGHT = 0.2
"""What weighs less is not recent: such a decision is found where a turn is about it."""


@dataclass(frozen=True)
class Entry:
    """A line that may enter the set. `mark` tells what it said last time from what it says now."""

    id: UUID
    layer: Layer
    line: str
    said: str
    scope: str
    weight: float
    why: str
    mark: int
    memory: Memory | None = None


@dataclass(frozen=True)
class Given:
    """What a session was given: what it said, its weight, the last turn it was in the set."""

    mark: int
    weight: float
    seen: int


@dataclass(frozen=True)
class ActiveSet:
    """What a session was given, after so many turns. Version 0: nothing is stored yet."""

    version: int = 0
    turn: int = 0
    given: Mapping[UUID, Given] = field(default_factory=dict)

    def compacted(self) -> ActiveSet:
        """The same where the agent lost what it was given."""
        return replace(self, given={})

    def lacks(self, entry: Entry) -> bool:
        """Whether the session was not given this, or something else under its id."""
        given = self.given.get(entry.id)
        return given is None or given.mark != entry.mark

    def with_entries(self, entries: Iterable[Entry], most: int = MOST_GIVEN) -> ActiveSet:
        """The set a turn later, when it holds the entries; at most `most` things given."""
        turn = self.turn + 1
        now = {one.id: Given(one.mark, one.weight, turn) for one in entries}
        every = {**self.given, **now}
        ranked = sorted(every, key=lambda one: (-_present(every[one], turn), one))
        return ActiveSet(self.version, turn, {one: every[one] for one in ranked[:most]})


@dataclass(frozen=True)
class Budgets:
    """Tokens by layer. They share a total in proportion; what does not divide is not spent."""

    resident: int
    recent: int
    on_demand: int

    @property
    def total(self) -> int:
        """What the layers take together at most."""
        return self.resident + self.recent + self.on_demand

    def of(self, layer: Layer) -> int:
        """The tokens of one layer."""
        return int(getattr(self, layer.value))

    def within(self, total: int) -> Budgets:
        """The same shares of another total, never more than it together."""
        whole, room = max(self.total, 1), max(total, 0)
        return Budgets(*(self.of(layer) * room // whole for layer in Layer))


@dataclass(frozen=True)
class Chosen:
    """The set of a turn: its entries by layer, best first, the tokens they take, what fell out."""

    entries: Sequence[Entry]
    tokens: Mapping[Layer, int]
    budgets: Budgets
    omitted: int

    def lacked_by(self, known: ActiveSet) -> list[Entry]:
        """The entries that a session was not given yet."""
        return [one for one in self.entries if known.lacks(one)]


@dataclass(frozen=True)
class Rendered:
    """The block, empty where there is nothing to say, and the tokens it takes."""

    markdown: str
    tokens: int
    shown: Sequence[Entry]


def choose(candidates: Mapping[Layer, Sequence[Entry]], budgets: Budgets, count: Count) -> Chosen:
    """Fills each layer, in the order given, within its budget; headings count too.

    A memory enters once, as recent before on demand; a line of a summary only where no memory of
    the set says the same. What does not fit is passed over for what does.
    """
    room = budgets.within(budgets.total - count(wrap(TITLE)) - len(Layer))
    taken: dict[Layer, list[Entry]] = {}
    tokens: dict[Layer, int] = {}
    omitted = 0
    for layer in (Layer.RECENT, Layer.ON_DEMAND, Layer.RESIDENT):
        before = [one for entries in taken.values() for one in entries]
        wanted = _unsaid(candidates.get(layer, ()), before)
        taken[layer], tokens[layer] = _filled(wanted, HEADINGS[layer], room.of(layer), count)
        omitted += len(wanted) - len(taken[layer])
    entries = [one for layer in Layer for one in taken[layer]]
    kept = _within(entries, budgets.total, count)
    return Chosen(kept, tokens, room, omitted + len(entries) - len(kept))


def render(entries: Sequence[Entry], count: Count) -> Rendered:
    """The entries under the headings of their layers, fenced."""
    markdown = _markdown(entries)
    return Rendered(markdown, count(markdown) if entries else 0, entries)


def resident(session: UUID, summaries: Iterable[tuple[str, str]], home: str) -> list[Entry]:
    """The lines of the summaries, each scope in turn, the session's own scope first."""
    ordered = sorted(summaries, key=lambda one: (one[0] != home, one[0]))
    by_scope = [[_told(session, scope, line) for line in _lines(text)] for scope, text in ordered]
    rounds = zip_longest(*by_scope)
    every = (one for entries in rounds for one in entries if one is not None)
    return list({one.id: one for one in every}.values())


def recent(memories: Iterable[Memory], now: datetime) -> list[Entry]:
    """What has priority and is fresh enough, the weightiest first, then the newest."""
    entries = [_entry(one, Layer.RECENT, _weight(one, now), _standing(one)) for one in memories]
    kept = [one for one in entries if one.weight >= LEAST_WEIGHT]
    return sorted(kept, key=lambda one: (-one.weight, -one.id.int))


def on_demand(hits: Iterable[tuple[Memory, float, str]], said: Callable[[str], str]) -> list[Entry]:
    """What was recalled, in its order, each once: memory, score, why. At most 20 of a scope.

    `said` cuts a long content to what answers the question.
    """
    per_scope: Counter[str] = Counter()
    found: dict[UUID, Entry] = {}
    for memory, score, why in hits:
        if memory.id not in found and per_scope[memory.scope] < PER_SCOPE:
            per_scope[memory.scope] += 1
            found[memory.id] = _entry(memory, Layer.ON_DEMAND, min(score, 1.0), why, said)
    return list(found.values())


def _within(entries: list[Entry], total: int, count: Count) -> list[Entry]:
    """The entries less the last ones that the block as a whole has no room for.

    A counter may find more in the whole than in its parts.
    """
    kept = list(entries)
    while kept and count(_markdown(kept)) > total:
        kept.pop()
    return kept


def _present(given: Given, turn: int) -> float:
    return float(given.weight * 0.5 ** ((turn - given.seen) / RECENCY_TURNS))


def _unsaid(candidates: Iterable[Entry], before: Sequence[Entry]) -> list[Entry]:
    """The candidates that no entry taken before is or says."""
    ids = {one.id for one in before}
    texts = [_plain(one.said) for one in before]
    return [
        one
        for one in candidates
        if one.id not in ids and not (one.memory is None and _repeats(one, texts))
    ]


def _repeats(line: Entry, texts: Iterable[str]) -> bool:
    said = _plain(line.said)
    return bool(said) and any(text.startswith(said) or said.startswith(text) for text in texts)


def _plain(text: str) -> str:
    return text.casefold().rstrip(" .…")


def _filled(
    wanted: Sequence[Entry], heading: str, budget: int, count: Count
) -> tuple[list[Entry], int]:
    """The entries that fit under their heading, and the tokens of both."""
    taken: list[Entry] = []
    used, misfits = count(heading) + 2, 0
    for one in wanted:
        cost = count(one.line) + 1
        if used + cost <= budget:
            taken.append(one)
            used += cost
        else:
            misfits += 1
        if misfits == MOST_MISFITS or used + LEAST_LINE > budget:
            break
    return (taken, used) if taken else ([], 0)


def _markdown(entries: Sequence[Entry]) -> str:
    if not entries:
        return ""
    parts = [TITLE]
    for layer, heading in HEADINGS.items():
        lines = [one.line for one in entries if one.layer is layer]
        if lines:
            parts.append("\n".join([heading, *lines]))
    return wrap("\n\n".join(parts))


def _told(session: UUID, scope: str, text: str) -> Entry:
    said = _flat(text, LINE_CHARS)
    return Entry(
        id=uuid5(session, f"{scope}\n{text}"),
        layer=Layer.RESIDENT,
        line=f"- [{scope} summary] {said}",
        said=said.partition(": ")[2] or said,
        scope=scope,
        weight=1.0,
        why="summary of its scope",
        mark=0,
    )


def _lines(summary: str) -> Iterator[str]:
    """The lines of a summary, each after the heading it stands under."""
    heading = ""
    for line in summary.splitlines():
        text = line.strip()
        if text.startswith("#"):
            heading = text.lstrip("# ").rstrip(":")
        elif text:
            text = text.removeprefix("- ")
            yield f"{heading}: {text}" if heading else text


def _entry(
    memory: Memory, layer: Layer, weight: float, why: str, said: Callable[[str], str] | None = None
) -> Entry:
    """The line of a memory: where it is from, what it says, why it is in doubt where it is."""
    content = said(memory.content) if said and not memory.summary else memory.content
    text = _flat(memory.summary or content, LINE_CHARS)
    return Entry(
        id=memory.id,
        layer=layer,
        line=f"- [{memory.scope} {short_id(memory.id)}] {text}{_doubt(memory)}",
        said=text,
        scope=memory.scope,
        weight=weight,
        why=why,
        mark=_mark(memory),
        memory=memory,
    )


def _mark(memory: Memory) -> int:
    """Another number where the content, the standing or the doubt is another."""
    state = (memory.content_hash, memory.summary, memory.status.value, memory.stale_grade)
    return crc32(repr(state).encode()) & 0x7FFFFFFF


def _doubt(memory: Memory) -> str:
    superseded = " (superseded)" if memory.status is Status.SUPERSEDED else ""
    if not memory.stale_grade:
        return superseded
    reason = _flat(memory.stale_reason or "", REASON_CHARS)
    return f"{superseded} (⚠ {memory.stale_grade}: {reason})"


def _flat(text: str, chars: int) -> str:
    """The text on one line, cut at a word, unable to end the fence."""
    flat = harmless(" ".join(text.split()))
    if len(flat) <= chars:
        return flat
    return flat[:chars].rsplit(" ", 1)[0] + " …"


def _weight(memory: Memory, now: datetime) -> float:
    """Priority by recency, 0..1: what is pinned, of the identity or always needed stays fresh."""
    if memory.pinned:
        return 1.0
    if memory.kind is Kind.IDENTITY:
        return 0.95
    how = TREATMENT[memory.kind]
    if how.tier is Tier.HOT or not how.decays:
        return 0.9 * memory.confidence
    days = (now - (memory.valid_from or memory.created_at)).total_seconds() / 86_400
    return float(0.9 * memory.confidence * 0.5 ** (max(days, 0.0) / FRESH_DAYS))


def _standing(memory: Memory) -> str:
    if memory.pinned:
        return "pinned"
    how = TREATMENT[memory.kind]
    fresh = "" if how.tier is Tier.HOT or not how.decays else "fresh "
    return f"{fresh}{memory.kind.value}"
