"""The active memory set of a session: selects what the agent needs now, and what is new to it.

Three layers with a token budget each: resident (lines of scope summaries), recent (important and
fresh memories) and on demand (recalled for this turn). Only what the session has not received yet
is rendered. The delivered entries are recorded; beyond a limit, those with the least weight are
forgotten and may be delivered again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from uuid import UUID

from reverie.domain.context.text_rendering import CountTokens, render_block
from reverie.domain.core.memory import Memory


class ActiveSetLayer(StrEnum):
    """The reason for an entry: it is resident, recent, or recalled on demand."""

    RESIDENT = "resident"
    RECENT = "recent"
    ON_DEMAND = "on_demand"


LAYER_HEADINGS = {
    ActiveSetLayer.RESIDENT: "**Where things stand**",
    ActiveSetLayer.RECENT: "**What to keep in mind**",
    ActiveSetLayer.ON_DEMAND: "**For this turn**",
}
TITLE_SECTION: tuple[str, Sequence[str]] = ("### Memory", ())
MIN_LINE_TOKENS = 8
"""The fewest tokens that a line can need: its source alone needs more."""
MAX_MISFITS = 8
"""Lines that may exceed the rest of a budget before no more are tried."""
MAX_DELIVERED = 400
"""Limit of delivered entries that are stored per session."""
DELIVERY_HALF_LIFE_TURNS = 10.0
"""After so many turns out of the set, what was given weighs half."""


@dataclass(frozen=True)
class ActiveSetEntry:
    """A line that may enter the set.

    `fingerprint` changes if the text of the entry changes.
    """

    id: UUID
    layer: ActiveSetLayer
    line: str
    text: str
    scope: str
    weight: float
    reason: str
    fingerprint: int
    memory: Memory | None = None
    relevance: float | None = None
    successor: UUID | None = None


@dataclass(frozen=True)
class DeliveredEntry:
    """An entry delivered to a session: its text, its weight, the last turn it was in the set."""

    fingerprint: int
    weight: float
    last_turn: int


@dataclass(frozen=True)
class ActiveMemorySet:
    """The entries delivered to a session, after a number of turns.

    Version 0: nothing is stored yet.
    """

    version: int = 0
    turn: int = 0
    delivered: Mapping[UUID, DeliveredEntry] = field(default_factory=dict)

    @property
    def is_unused(self) -> bool:
        """Whether the session had no turn, and was not shown a context block."""
        return self.version == 0

    def after_compaction(self) -> ActiveMemorySet:
        """Returns the set after the agent lost the delivered entries."""
        return replace(self, delivered={})

    def is_missing(self, entry: ActiveSetEntry) -> bool:
        """Returns whether the session did not receive this entry, or received another text under
        its id."""
        existing = self.delivered.get(entry.id)
        return existing is None or existing.fingerprint != entry.fingerprint

    def with_entries(
        self,
        entries: Iterable[ActiveSetEntry],
        limit: int = MAX_DELIVERED,
        *,
        begins_turn: bool = True,
    ) -> ActiveMemorySet:
        """Returns the set of the next turn with these entries; keeps at most `limit` delivered
        ones. Without `begins_turn`, they are given within the current turn."""
        turn = self.turn + begins_turn
        current = {item.id: DeliveredEntry(item.fingerprint, item.weight, turn) for item in entries}
        all_entries = {**self.delivered, **current}

        def rank(item: UUID) -> tuple[float, UUID]:
            entry = all_entries[item]
            decay = 0.5 ** ((turn - entry.last_turn) / DELIVERY_HALF_LIFE_TURNS)
            return -entry.weight * decay, item

        kept = sorted(all_entries, key=rank)[:limit]
        return ActiveMemorySet(self.version, turn, {item: all_entries[item] for item in kept})


@dataclass(frozen=True)
class LayerBudgets:
    """Tokens by layer. They share a total in proportion; what does not divide is not spent."""

    resident: int
    recent: int
    on_demand: int

    @property
    def total(self) -> int:
        """The total token limit of the layers."""
        return self.resident + self.recent + self.on_demand

    def tokens_for(self, layer: ActiveSetLayer) -> int:
        """The tokens of one layer."""
        return int(getattr(self, layer.value))

    def scale_to(self, total: int) -> LayerBudgets:
        """The same shares of another total, never more than it together."""
        current_total, new_total = max(self.total, 1), max(total, 0)
        return LayerBudgets(
            *(self.tokens_for(layer) * new_total // current_total for layer in ActiveSetLayer)
        )


@dataclass(frozen=True)
class ActiveSetSelection:
    """The set of a turn: its entries by layer, best first, their tokens, the dropped entries."""

    entries: Sequence[ActiveSetEntry]
    tokens: Mapping[ActiveSetLayer, int]
    budgets: LayerBudgets
    omitted: int

    def missing_from(self, active_set: ActiveMemorySet) -> list[ActiveSetEntry]:
        """The entries that a session was not given yet."""
        return [entry for entry in self.entries if active_set.is_missing(entry)]

    def usage(self) -> list[tuple[str, int, int]]:
        """Each layer with the tokens that it uses and its budget."""
        return [
            (layer.value, self.tokens.get(layer, 0), self.budgets.tokens_for(layer))
            for layer in ActiveSetLayer
        ]


@dataclass(frozen=True)
class RenderedActiveSet:
    """The rendered block, empty if there are no entries, and its tokens."""

    markdown: str
    tokens: int
    entries: Sequence[ActiveSetEntry]


def select_entries(
    candidates: Mapping[ActiveSetLayer, Sequence[ActiveSetEntry]],
    budgets: LayerBudgets,
    count_tokens: CountTokens,
) -> ActiveSetSelection:
    """Fills each layer, in the order given, within its budget; headings count too.

    A memory enters once, on demand rather than as recent. A line of a summary enters only if no
    memory of the set has the same content. Entries that do not fit are skipped.
    """
    layer_budgets = budgets.scale_to(
        budgets.total - count_tokens(render_block([TITLE_SECTION])) - len(ActiveSetLayer)
    )
    selected: dict[ActiveSetLayer, list[ActiveSetEntry]] = {}
    tokens: dict[ActiveSetLayer, int] = {}
    omitted = 0
    for layer in (ActiveSetLayer.ON_DEMAND, ActiveSetLayer.RECENT, ActiveSetLayer.RESIDENT):
        earlier = [entry for entries in selected.values() for entry in entries]
        new_entries = _drop_repeated(candidates.get(layer, ()), earlier)
        selected[layer], tokens[layer] = _fill_layer(
            new_entries, LAYER_HEADINGS[layer], layer_budgets.tokens_for(layer), count_tokens
        )
        omitted += len(new_entries) - len(selected[layer])
    entries = [entry for layer in ActiveSetLayer for entry in selected[layer]]
    # A counter may find more in the whole than in its parts.
    fitting = list(entries)
    while fitting and count_tokens(_render_markdown(fitting)) > budgets.total:
        fitting.pop()
    return ActiveSetSelection(fitting, tokens, layer_budgets, omitted + len(entries) - len(fitting))


def render_active_set(
    entries: Sequence[ActiveSetEntry], count_tokens: CountTokens
) -> RenderedActiveSet:
    """The entries under the headings of their layers, fenced."""
    markdown = _render_markdown(entries)
    return RenderedActiveSet(markdown, count_tokens(markdown) if entries else 0, entries)


def _drop_repeated(
    candidates: Iterable[ActiveSetEntry], earlier: Sequence[ActiveSetEntry]
) -> list[ActiveSetEntry]:
    """Drops candidates that repeat an entry or its text."""
    ids = {entry.id for entry in earlier}
    texts = [_normalize_text(entry.text) for entry in earlier]

    def is_repeated(entry: ActiveSetEntry) -> bool:
        text = _normalize_text(entry.text)
        return bool(text) and any(
            other.startswith(text) or text.startswith(other) for other in texts
        )

    return [
        entry
        for entry in candidates
        if entry.id not in ids and (entry.memory is not None or not is_repeated(entry))
    ]


def _normalize_text(text: str) -> str:
    return text.casefold().rstrip(" .…")


def _fill_layer(
    candidates: Sequence[ActiveSetEntry], heading: str, budget: int, count_tokens: CountTokens
) -> tuple[list[ActiveSetEntry], int]:
    """The entries that fit under their heading, and the tokens of both.

    A memory whose successor does not fit is not given without it.
    """
    selected: list[ActiveSetEntry] = []
    misfits: set[UUID] = set()
    used = count_tokens(heading) + 2
    for entry in candidates:
        cost = count_tokens(entry.line) + 1
        if used + cost <= budget and entry.successor not in misfits:
            selected.append(entry)
            used += cost
        else:
            misfits.add(entry.id)
        if len(misfits) == MAX_MISFITS or used + MIN_LINE_TOKENS > budget:
            break
    return (selected, used) if selected else ([], 0)


def _render_markdown(entries: Sequence[ActiveSetEntry]) -> str:
    if not entries:
        return ""
    sections = (
        (heading, [entry.line for entry in entries if entry.layer is layer])
        for layer, heading in LAYER_HEADINGS.items()
    )
    return render_block([TITLE_SECTION, *(section for section in sections if section[1])])
