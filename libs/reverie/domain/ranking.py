"""The order of what was found: arms fused, spread over the graph, weighed. Pure.

Arms are fused by a weighted sum of their scores, each as a share of the arm's best, or by
reciprocal ranks (Cormack, Clarke & Büttcher 2009). The sum keeps the distance between a good hit
and a poor one, which confidence, age and doubt are then weighed against; it also found more
(docs/performance.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from operator import eq, itemgetter
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

from reverie.domain.question import Intent

ARM_WEIGHTS: Mapping[str, float] = {"words": 0.45, "meaning": 0.55}
Fusion = Literal["weighted", "reciprocal"]
RECIPROCAL_K = 60
NEAR = 0.6
MANY = 100
HOP_WEIGHT = 0.4
BACKBONE = "follows"
BELOW = 0.95
TURN_LOAN = 0.4
LONG = 2.0

EDGE_WEIGHTS: Mapping[str, float] = {
    "led_to": 1.0,
    "supersedes": 1.0,
    "contradicts": 0.9,
    "depends_on": 0.8,
    "part_of": 0.8,
    "relates_to": 0.7,
    "follows": 0.35,
    "learned_in": 0.4,
    "touches": 0.0,
}
BY_INTENT: Mapping[Intent, Mapping[str, float]] = {
    Intent.WHY: {"led_to": 1.5, "supersedes": 1.3, "contradicts": 1.2},
    Intent.WHEN: {"follows": 1.3, "learned_in": 1.5},
    Intent.HOW: {"part_of": 1.3, "depends_on": 1.3},
    Intent.WHAT: {"relates_to": 1.2, "depends_on": 1.2},
}
"""How much more an edge says to a question of that intent."""


NOTHING: Mapping[str, Any] = {}


class Hop(NamedTuple):
    """How a memory was reached: along which type of edge, from where, and what it lent."""

    source: UUID
    kind: str
    lent: float


class Found(NamedTuple):
    """A memory with its score, the rank (from 1) at which each arm had it, and its hops.

    `raw`: each arm's own score. `fused`: what the arms gave. `factors`: what it was multiplied by.
    """

    id: UUID
    score: float
    arms: Mapping[str, int] = NOTHING
    raw: Mapping[str, float] = NOTHING
    fused: float = 0.0
    hops: tuple[Hop, ...] = ()
    factors: Mapping[str, float] = NOTHING


_BY_GRAPH: Mapping[str, int] = {"graph": 1}
_ID, _SCORE = itemgetter(0), itemgetter(1)


class Scored(Protocol):
    """What an arm found, with that arm's own score."""

    @property
    def id(self) -> UUID: ...
    @property
    def score(self) -> float: ...


class Seen(Scored, Protocol):
    """What words found; `whole`: no other arm misses it for being new."""

    @property
    def whole(self) -> bool: ...


class Edge(Protocol):
    """An edge seen from a memory that was found."""

    @property
    def near(self) -> UUID: ...
    @property
    def far(self) -> UUID: ...
    @property
    def kind(self) -> str: ...
    @property
    def weight(self) -> float: ...


def fuse(
    arms: Mapping[str, Sequence[Scored]],
    weights: Mapping[str, float] = ARM_WEIGHTS,
    how: Fusion = "weighted",
) -> list[Found]:
    """What all arms found, each arm in its own order, best first; ties by id.

    Scores lie in 0..1: weights count as shares of those of the arms that brought something.
    """
    there = {name: hits for name, hits in arms.items() if hits and weights.get(name, 0.0) > 0}
    whole = sum(weights[name] for name in there)
    fused: dict[UUID, Found] = {}
    for name in sorted(there):
        given = _shares(name, there[name]) if how == "weighted" else _reciprocal(there[name])
        weight = weights[name] / whole
        for rank, (hit, share) in enumerate(zip(there[name], given, strict=True), start=1):
            one, score = hit.id, weight * share
            other = fused.get(one)
            if other is None:
                fused[one] = Found(one, score, {name: rank}, {name: hit.score}, score)
            else:
                score += other.score
                ranks, raw = {**other.arms, name: rank}, {**other.raw, name: hit.score}
                fused[one] = Found(one, score, ranks, raw, score)
    return best_first(fused.values())


def _shares(name: str, hits: Sequence[Scored]) -> list[float]:
    """Each hit's score between the arm's base and its best, as 0..1.

    A cosine says little below that of a distant text, and how much a distant text has hangs on the
    model. So the base of meaning is its last candidate of many; of few all may be near, so there
    it is 0.6 of the best where that is less.
    """
    best = hits[0].score
    base = _distant(best, hits[-1].score, len(hits)) if name == "meaning" else 0.0
    return [(hit.score - base) / (best - base) if best > base else 1.0 for hit in hits]


def _distant(best: float, last: float, many: int) -> float:
    return last if many >= MANY else min(last, NEAR * best)


def _reciprocal(hits: Sequence[Scored]) -> list[float]:
    return [(RECIPROCAL_K + 1) / (RECIPROCAL_K + rank) for rank in range(1, len(hits) + 1)]


def unseen(by_words: Iterable[Seen], by_meaning: Sequence[Scored]) -> frozenset[UUID]:
    """What only words could find, for it had no vectors yet; none where meaning found nothing.

    What counts is how it was when it was looked for: its vectors may come a moment later.
    """
    if not by_meaning:
        return frozenset()
    new = {one.id for one in by_words if not one.whole}
    return frozenset(new - {one.id for one in by_meaning} if new else ())


def rescore(
    found: Sequence[Found],
    name: str,
    hits: Sequence[Scored],
    weight: float,
    how: Fusion = "weighted",
    long: Container[UUID] = (),
) -> list[Found]:
    """What was found, judged by one arm more, which brings nothing of its own, best first.

    Its `hits` are some of `found`, best first; a share `weight` of their scores goes by it, twice
    that of `long` texts: it looks at their best passage, where their words are those of the whole.
    What it does not know keeps its score.
    """
    if not hits or not weight:
        return list(found)
    given = _shares(name, hits) if how == "weighted" else _reciprocal(hits)
    standing = {one.id: one for one in found}
    for rank, (hit, share) in enumerate(zip(hits, given, strict=True), start=1):
        one = standing[hit.id]
        counts = min(1.0, LONG * weight) if hit.id in long else weight
        score = (1 - counts) * one.score + counts * share
        arms, raw = {**one.arms, name: rank}, {**one.raw, name: hit.score}
        standing[hit.id] = Found(one.id, score, arms, raw, score, one.hops, one.factors)
    return best_first(standing.values())


def edge_weight(kind: str, intent: Intent = Intent.GENERAL) -> float:
    """How much of a score passes along an edge of that type, for a question of that intent."""
    return EDGE_WEIGHTS.get(kind, 0.5) * BY_INTENT.get(intent, {}).get(kind, 1.0)


def expand(
    found: Sequence[Found],
    edges: Iterable[Edge],
    intent: Intent = Intent.GENERAL,
    *,
    only_new: bool = False,
) -> list[Found]:
    """What was found lends to its neighbours: score × edge × hop.

    A neighbour has at least the strongest loan along an edge, and what its neighbours in the
    session lend is added: what answers is often said beside what has the words of the question,
    while many edges only say that texts are alike, which the arms know. All loans are reckoned
    from the scores before any of them, so that the order of edges does not matter. `only_new`:
    a further hop, which lends nothing to what stands already.
    """
    standing = {one.id: one for one in found}
    loans = _loans(standing, edges, intent, only_new)
    for far, given in loans.items():
        standing[far] = _with_loans(standing.get(far) or Found(far, 0.0, _BY_GRAPH), given)
    return best_first(standing.values())


def _loans(
    standing: Mapping[UUID, Found], edges: Iterable[Edge], intent: Intent, only_new: bool
) -> dict[UUID, dict[tuple[UUID, bool], Hop]]:
    """What each memory is lent, the most along each way: from where, in its session or not."""
    loans: dict[UUID, dict[tuple[UUID, bool], Hop]] = defaultdict(dict)
    passes: dict[str, float] = {}
    for edge in edges:
        near, far, kind = edge.near, edge.far, edge.kind
        lender = standing.get(near)
        if lender is None or (only_new and far in standing):
            continue
        if kind not in passes:
            passes[kind] = edge_weight(kind, intent)
        lent = lender.score * edge.weight * passes[kind] * HOP_WEIGHT
        if lent <= 0:
            continue
        ways, way = loans[far], (near, kind == BACKBONE)
        held = ways.get(way)
        if held is None or (lent, kind) > (held.lent, held.kind):
            ways[way] = Hop(near, kind, lent)
    return loans


def _with_loans(one: Found, loans: Mapping[tuple[UUID, bool], Hop]) -> Found:
    lent: Iterable[Hop] = loans.values()
    if len(loans) > 1:
        lent = sorted(lent, key=_strongest)
    score = one.score
    linked: list[Hop] = []
    beside: list[Hop] = []
    for hop in lent:
        if hop.kind == BACKBONE:
            beside.append(hop)
        elif not linked and hop.lent > one.score:
            linked.append(hop)
            score = hop.lent
    if not linked and not beside:
        return one
    score += sum([hop.lent for hop in beside])
    hops = (*one.hops, *linked, *beside)
    return Found(one.id, score, one.arms, one.raw, one.fused, hops, one.factors)


def _strongest(hop: Hop) -> tuple[float, UUID]:
    return -hop.lent, hop.source


def in_order(turns: Mapping[UUID, tuple[UUID, int, float]]) -> dict[UUID, float]:
    """Turns by (session, place, score): each lends to the two before and the two after it.

    What answers a question is often said beside the turn that has its words.
    """
    at = {(session, place): score for session, place, score in turns.values()}
    return {
        turn: score
        + sum(
            TURN_LOAN / abs(steps) * at.get((session, place + steps), 0.0)
            for steps in (-2, -1, 1, 2)
        )
        for turn, (session, place, score) in turns.items()
    }


def times(one: Found, factors: Mapping[str, float]) -> Found:
    """The score times all factors, which are kept beside it; those of 1 are not."""
    score = one.score
    told = dict(one.factors)
    for name, factor in factors.items():
        if factor != 1.0:
            score *= factor
            told[name] = round(factor, 4)
    return Found(one.id, score, one.arms, one.raw, one.fused, one.hops, told)


def under_successors(found: Sequence[Found], successor: Mapping[UUID, UUID]) -> list[Found]:
    """What was replaced stands below what took its place, where both were found.

    A score of 0 stays: there is nothing below it.
    """
    if not successor:
        return best_first(found)
    standing = {one.id: one for one in found}
    # The newest first, so that a chain of replacements comes out in order.
    for one in sorted(found, key=lambda one: one.id, reverse=True):
        newer = standing.get(successor[one.id]) if one.id in successor else None
        if newer is not None and one.score >= newer.score and one.score > 0:
            standing[one.id] = times(one, {"successor": BELOW * newer.score / one.score})
    return best_first(standing.values())


def above_others(found: Sequence[Found], first: Collection[UUID]) -> list[Found]:
    """All of `first` stand above the rest, whose scores keep their shares of the best of them.

    A score of 0 stays: there is nothing below it.
    """
    if not first:
        return list(found)
    least = min((one.score for one in found if one.id in first and one.score > 0), default=0.0)
    most = max((one.score for one in found if one.id not in first), default=0.0)
    if not least or most < least:
        return list(found)
    factor = {"named": BELOW * least / most}
    return best_first(one if one.id in first else times(one, factor) for one in found)


def moved_to(one: Found, score: float) -> Found:
    """The same with another score; the factor `rerank` says by how much it changed."""
    if one.score in (0.0, score):
        return one
    return one._replace(score=score, factors={**one.factors, "rerank": round(score / one.score, 4)})


def best_first(found: Iterable[Found]) -> list[Found]:
    """By score, ties by id."""
    ranked = sorted(found, key=_SCORE, reverse=True)
    scores = list(map(_SCORE, ranked))
    tied = [place for place, same in enumerate(map(eq, scores, scores[1:])) if same]
    done = 0
    for first in tied:
        # Ids compare slowly, and only those of one score have to.
        if first >= done:
            done = first + 2
            while done < len(scores) and scores[done] == scores[first]:
                done += 1
            ranked[first:done] = sorted(ranked[first:done], key=_ID)
    return ranked
