"""What stands in an answer and what does not: hits, one order of memories and turns, the budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from reverie.domain.diversity import likeness
from reverie.domain.memory import Memory
from reverie.domain.ranking import ARM_WEIGHTS, Found, in_order
from reverie.store.search import Candidate, TurnHit

TURN_WEIGHT = 0.6
TOLD_TOGETHER = 3

Between = tuple[UUID, UUID, UUID, str, float]
"""An edge between two memories of an answer: id, source, target, type, weight."""


@dataclass(frozen=True)
class Hit:
    """A memory or a turn in the answer; `turns`: neighbours that are read as one with it."""

    found: Found
    item: Memory | TurnHit
    turns: tuple[TurnHit, ...] = ()

    @property
    def content(self) -> str:
        """The text that counts against the budget."""
        return "\n\n".join(turn.content for turn in self.turns) or self.item.content


@dataclass(frozen=True)
class Cut:
    """Why a candidate is not in the answer, and which memory took its place if one did."""

    why: str
    by: UUID | None = None


def cut_away(hits: Sequence[Hit], kept: Sequence[Hit], limit: int) -> dict[UUID, Cut]:
    """Why each of `hits`, in the order of choice, is not among those kept.

    What was passed over did not fit the budget; of what stood behind the last one kept, that with a
    better score than it gave way to diversity.
    """
    shown = {hit.item.id for hit in kept}
    last = kept[-1] if len(kept) == limit else None
    why: dict[UUID, Cut] = {}
    behind = False
    for hit in hits:
        if hit.item.id not in shown:
            above = last is not None and hit.found.score > last.found.score
            why[hit.item.id] = Cut(("diversity" if above else "limit") if behind else "budget")
        behind = behind or hit is last
    return why


def once_each(
    found: Sequence[Found], known: Mapping[UUID, Candidate]
) -> tuple[list[Found], dict[UUID, Cut]]:
    """The first of each text, and which of them the others gave way to."""
    once: dict[bytes, Found] = {}
    left = {}
    for one in found:
        first = once.setdefault(known[one.id].facts.content_hash, one)
        if first is not one:
            left[one.id] = Cut("double", first.id)
    return list(once.values()), left


def passed_over(
    pool: Sequence[Found], texts: Sequence[frozenset[str]], order: Sequence[tuple[int, float]]
) -> tuple[dict[UUID, float], dict[UUID, Cut]]:
    """How like each of `pool` is to what `order` took of it, and why the rest was not taken."""
    alike, left = dict(order), dict[UUID, Cut]()
    for place, one in enumerate(pool):
        if place in alike:
            continue
        above = one.score > pool[order[-1][0]].score
        left[one.id] = Cut("diversity" if above else "limit")
        if above:
            alike[place] = max(likeness(texts[place], texts[taken]) for taken, _ in order)
    return {pool[place].id: near for place, near in alike.items()}, left


def among(edges: Sequence[Between], kept: Sequence[Hit]) -> list[Between]:
    """Those edges whose ends both are in the answer."""
    shown = {hit.item.id for hit in kept}
    return [edge for edge in edges if edge[1] in shown and edge[2] in shown]


def first_of(chosen: Sequence[Found], limit: int) -> tuple[Sequence[Found], dict[UUID, Cut]]:
    """The first of what was chosen, and why each of the rest is not among them."""
    left = {}
    for one in chosen[limit:]:
        above = one.score > chosen[limit - 1].score
        left[one.id] = Cut("diversity" if above else "limit")
    return chosen[:limit], left


def together(memories: list[Hit], turns: Sequence[TurnHit]) -> list[Hit]:
    """Memories and raw turns in one order, that of the memories kept.

    Turns are scored as a share of the best turn, since another corpus gave them; a turn gives
    way to a memory that was made of it. The best turn stands well below the best memory where that
    has the words of the question as well, and just above it where no memory has any of them.
    """
    if not turns:
        return memories
    told = {
        turn for hit in memories[:20] if isinstance(hit.item, Memory) for turn in hit.item.turns
    }
    top = max((hit.found.score for hit in memories), default=TURN_WEIGHT)
    lent = in_order({turn.id: (turn.session, turn.ord, turn.score) for turn in turns})
    rank = {turn.id: place for place, turn in enumerate(turns, start=1)}
    fresh = [turn for turn in turns if turn.id not in told]
    best = max((lent[turn.id] for turn in fresh), default=1.0)
    first = min(1.0, top * _turn_weight(memories, turns))
    raw = [
        Hit(_found_turn(turn, rank[turn.id], first * lent[turn.id] / best), turn) for turn in fresh
    ]
    return sorted([*memories, *raw], key=lambda hit: (-hit.found.score, hit.found.id))


def as_read(hits: Sequence[Hit]) -> tuple[list[Hit], dict[UUID, Cut]]:
    """The hits, best first, with turns that follow one another read as one, and what went into
    which: a question and its answer say more side by side. At most `TOLD_TOGETHER` are."""
    read: list[Hit] = []
    gone: dict[UUID, Cut] = {}
    for hit in hits:
        place = next((n for n, other in enumerate(read) if _follow(other, hit)), None)
        if place is None or not isinstance(hit.item, TurnHit):
            read.append(hit)
            continue
        first = read[place]
        turns = sorted([*_turns(first), hit.item], key=lambda turn: turn.ord)
        read[place] = replace(first, turns=tuple(turns))
        gone[hit.item.id] = Cut("beside", first.item.id)
    return read, gone


def _follow(one: Hit, other: Hit) -> bool:
    stand, comes = _turns(one), _turns(other)
    if not stand or not comes or len(stand) + len(comes) > TOLD_TOGETHER:
        return False
    beside = comes[-1].ord + 1 == stand[0].ord or stand[-1].ord + 1 == comes[0].ord
    return beside and stand[0].session == comes[0].session


def _turns(hit: Hit) -> Sequence[TurnHit]:
    return hit.turns or ((hit.item,) if isinstance(hit.item, TurnHit) else ())


def _turn_weight(memories: Sequence[Hit], turns: Sequence[TurnHit]) -> float:
    """The best turn's score as a share of the best memory's.

    Where words say less of the memories than of the turns, that much of their scores is lacking.
    """
    said = max((hit.found.raw.get("words", 0.0) for hit in memories), default=0.0)
    most = max(turn.score for turn in turns)
    lacking = max(0.0, 1.0 - said / most) if most > 0 else 0.0
    return TURN_WEIGHT / (1.0 - ARM_WEIGHTS["words"] * lacking)


def _found_turn(turn: TurnHit, rank: int, score: float) -> Found:
    return Found(turn.id, score, {"turns": rank}, {"turns": turn.score}, fused=score)


def within(
    hits: Sequence[Hit], limit: int, budget: int | None, count: Callable[[str], int]
) -> tuple[list[Hit], int]:
    """At most `limit` hits whose contents together take at most `budget` tokens.

    One that does not fit is passed over for a smaller one behind it.
    """
    kept: list[Hit] = []
    used = 0
    for hit in hits:
        if len(kept) == limit:
            break
        cost = count(hit.content)
        if budget is None or used + cost <= budget:
            kept.append(hit)
            used += cost
    return kept, used
