"""Searches a recall index: words, vectors, sparse words, and edges of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reverie.domain.retrieval.candidates import (
    NO_EDGES,
    NO_HITS,
    ArmHits,
    NeighbourEdges,
    is_among,
    sort_by_score,
)
from reverie.domain.retrieval.graph_expansion import SESSION_KIND
from reverie.domain.retrieval.ranking_facts import (
    ACTIVE,
    KINDS,
    STATUSES,
    SUPERSEDED,
    BoolArray,
    FloatArray,
    IntArray,
    Numbers,
)
from reverie.domain.retrieval.recall_index import (
    MAX_COMPARED,
    MAX_INTEGER,
    MAX_SCALE,
    MAX_WEIGHT,
    NO_SESSION,
    Edges,
    Passages,
    Postings,
    RecallIndex,
    pack_signs,
)

K1, B = 1.2, 0.75
SHORT_TEXT_WORDS = 18
"""Shorter texts count as nearly that long, because each contains one statement."""
VECTORS_AT_ONCE = 512
NEAR_PART = 8
"""If there are many passages, one in this many is compared: those with the likeliest signs."""
MAX_STEPS = 2
"""Neighbours before and after a memory in its session."""


class IndexFilter(NamedTuple):
    """Rows of an index: those whose scope may be read, and of these those that may be found."""

    readable: BoolArray
    wanted: BoolArray


def build_filter(
    index: RecallIndex,
    scopes: Sequence[str],
    statuses: Sequence[str],
    kinds: Sequence[str] | None,
) -> IndexFilter:
    """Evaluates the filter of a question for all rows."""
    readable = index.match_scopes(scopes)
    wanted = readable & np.array([status in statuses for status in STATUSES])[index.statuses]
    if kinds is not None:
        wanted &= np.array([kind in kinds for kind in KINDS])[index.kinds]
    return IndexFilter(readable, wanted)


def search_words(
    index: RecallIndex, terms: NDArray[np.int32], rows: IndexFilter, limit: int
) -> ArmHits:
    """The best rows by BM25 (k1 1.2, b 0.75; Robertson & Zaragoza 2009).

    Only readable rows count as documents, so that a score says nothing of others.
    """
    lengths = np.where(rows.readable, index.lengths, 0)
    documents = int(np.count_nonzero(lengths))
    if not documents:
        return NO_HITS
    mean = _effective_length(max(lengths.sum() / documents, 1.0))
    base = _find_postings(index.base.postings, rows.readable & ~index.replaced, terms)
    overlay = _find_postings(index.overlay.postings, rows.readable, terms)
    places, found, counts = (np.concatenate(pair) for pair in zip(base, overlay, strict=True))
    frequencies = np.bincount(places, minlength=len(terms))
    weights = np.log1p((documents - frequencies + 0.5) / (frequencies + 0.5)) * (K1 + 1)
    norms = K1 * (1 - B) + K1 * B / mean * _effective_length(index.lengths[found])
    shares = weights[places] * counts / (counts + norms)
    scores = np.bincount(found, shares, minlength=len(index.records)).astype(np.float32)
    return _take_best(index, np.flatnonzero(rows.wanted & (scores > 0)), scores, limit)


def _effective_length(length: NDArray[np.int32] | float) -> FloatArray:
    return np.maximum(length, SHORT_TEXT_WORDS + 0.1 * np.asarray(length, np.float64))


def _find_postings(
    postings: Postings, usable: BoolArray, terms: NDArray[np.int32]
) -> Sequence[NDArray[Any]]:
    """The usable rows that have the terms: for each the term's place, and its occurrences."""
    begins = postings.begins[np.searchsorted(postings.terms, terms)]
    ends = postings.begins[np.searchsorted(postings.terms, terms, side="right")]
    slices = [slice(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]
    places = np.repeat(np.arange(len(terms)), ends - begins)
    found = np.concatenate([postings.rows[:0], *(postings.rows[part] for part in slices)])
    counts = np.concatenate([postings.counts[:0], *(postings.counts[part] for part in slices)])
    kept = usable[found]
    return places[kept], found[kept], counts[kept]


def _take_best(
    index: RecallIndex, rows: IntArray, all_scores: NDArray[np.float32], limit: int
) -> ArmHits:
    """The best of some rows, ties by number."""
    if len(rows) > limit:
        least = np.partition(all_scores[rows], -limit)[-limit]
        rows = rows[all_scores[rows] >= least]
    docs, scores = index.records["doc"][rows], all_scores[rows].astype(np.float64)
    order = sort_by_score(docs, scores)[:limit]
    return ArmHits(docs[order], scores[order])


def search_vectors(
    index: RecallIndex, vectors: Sequence[NDArray[np.float32]], rows: IndexFilter, limit: int
) -> ArmHits:
    """The nearest rows by the cosine of their nearest passage to the nearest of the vectors."""
    # Rounded to 16 bits, as in a query to Postgres, so that both give the same scores.
    queries = np.stack(vectors).astype(np.float16).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True) * MAX_INTEGER * MAX_SCALE
    current = rows.wanted & index.is_whole
    cosines = np.full(len(index.records), -np.inf, np.float32)
    near = _find_near(index, queries, current & ~index.replaced)
    _compare(cosines, index.base.passages, queries, near)
    cosines[index.replaced] = -np.inf
    _compare(cosines, index.overlay.passages, queries)
    return _take_best(index, np.flatnonzero(current & np.isfinite(cosines)), cosines, limit)


def _compare(
    cosines: NDArray[np.float32],
    passages: Passages,
    queries: NDArray[np.float32],
    places: IntArray | None = None,
) -> None:
    """Raises the cosine of each row to that of its nearest passage, of those at `places`."""
    for start in range(0, len(passages.memories if places is None else places), VECTORS_AT_ONCE):
        block: Any = slice(start, start + VECTORS_AT_ONCE)
        block = block if places is None else places[block]
        similar = (passages.vectors[block].astype(np.float32) @ queries.T).max(axis=1)
        np.maximum.at(cosines, passages.memories[block], similar * passages.scales[block])


def _find_near(
    index: RecallIndex, queries: NDArray[np.float32], usable: BoolArray
) -> IntArray | None:
    """The places of the base's passages to compare; None for all.

    Of more than `MAX_COMPARED`, the part whose numbers have most signs in common with a question's:
    of 20,000 sentences it had 99 % of the hundred nearest, and all of the ten nearest.
    """
    if index.base_signs is None:
        return None
    places = np.flatnonzero(usable[index.base.passages.memories])
    if len(places) <= MAX_COMPARED:
        return places
    distances = np.full(len(places), np.iinfo(np.uint16).max, np.uint16)
    for asked in pack_signs(queries).T:
        differing = np.zeros(index.base_signs.shape[1], np.uint16)
        for own, wanted in zip(index.base_signs, asked, strict=True):
            differing += np.bitwise_count(own ^ wanted)
        distances = np.minimum(distances, differing[places])
    count = len(places) // NEAR_PART
    near: IntArray = places[distances <= np.partition(distances, count)[count]]
    return near


def _usable_passages(index: RecallIndex, rows: BoolArray) -> Iterator[tuple[Passages, BoolArray]]:
    """The passages of both parts, and the rows whose passages each part holds.

    Passages of an earlier text do not count.
    """
    current = rows & index.is_whole
    yield index.base.passages, current & ~index.replaced
    yield index.overlay.passages, current


def search_sparse(index: RecallIndex, words: Mapping[int, float], docs: IntArray) -> ArmHits:
    """Those of `docs` that have sparse words, by the inner product of their best passage."""
    question = np.zeros(np.iinfo(np.uint16).max + 1, np.float32)
    question[list(words)] = list(words.values())
    wanted = np.zeros(len(index.records), np.bool_)
    wanted[index.find_rows(docs)] = True
    rows, products = [], []
    for passages, usable in _usable_passages(index, wanted):
        chosen = np.flatnonzero(usable[passages.memories] & (passages.sparse_sizes > 0))
        ends = np.cumsum(passages.sparse_sizes, dtype=np.int64)
        sizes = passages.sparse_sizes[chosen].astype(np.int64)
        places = _ranges(ends[chosen] - sizes, sizes)
        parts = question[passages.sparse_words[places]] * passages.sparse_weights[places]
        rows.append(passages.memories[chosen])
        sums = np.add.reduceat(parts, np.cumsum(sizes) - sizes) if len(sizes) else parts
        products.append(sums * passages.sparse_scales[chosen])
    all_rows, all_products = np.concatenate(rows), np.concatenate(products)
    found, places, counts = np.unique(all_rows, return_inverse=True, return_counts=True)
    best = np.full(len(found), -np.inf)
    np.maximum.at(best, places, all_products)
    found_docs = index.records["doc"][found]
    order = sort_by_score(found_docs, best)
    return ArmHits(found_docs[order], best[order], counts[order] > 1)


def _ranges(begins: IntArray, sizes: NDArray[np.integer]) -> IntArray:
    """The numbers from each of `begins` on, as many as `sizes` says, one range after another."""
    offsets = np.cumsum(sizes) - sizes
    numbers: IntArray = np.arange(int(sizes.sum())) + np.repeat(begins - offsets, sizes)
    return numbers


def find_edges_around(
    index: RecallIndex, docs: IntArray, rows: IndexFilter, fan_out: int
) -> NeighbourEdges:
    """The strongest `fan_out` edges of each memory to readable ones, and those along sessions."""
    seeds = index.find_rows(docs)
    near, far, kinds, weights = _edges_of(index, seeds)
    kept = np.flatnonzero(_is_visible(index, rows, far))
    numbers = index.records["doc"]
    order = kept[
        np.lexsort((kinds[kept], numbers[far[kept]], -weights[kept].astype(np.int32), near[kept]))
    ]
    sorted_near = near[order]
    place = np.arange(len(order)) - np.searchsorted(sorted_near, sorted_near)
    order = order[place < fan_out]
    sessions = _find_session_edges(index, seeds, rows)
    return NeighbourEdges(
        np.concatenate([numbers[near[order]], numbers[sessions.near]]),
        np.concatenate([numbers[far[order]], numbers[sessions.far]]),
        np.concatenate([kinds[order], sessions.kinds]),
        np.concatenate([weights[order] / MAX_WEIGHT, sessions.weights]),
    )


def _is_visible(index: RecallIndex, rows: IndexFilter, which: Numbers) -> BoolArray:
    """Which of these rows may be a neighbour."""
    status = index.statuses[which]
    is_visible: BoolArray = rows.readable[which] & ((status == ACTIVE) | (status == SUPERSEDED))
    return is_visible


def has_edges_among(index: RecallIndex, docs: IntArray) -> bool:
    """Whether any two memories of a list have an edge."""
    rows = index.find_rows(docs)
    return bool(is_among(rows, _edges_of(index, rows[rows >= 0]).far).any())


def _edges_of(index: RecallIndex, rows: IntArray) -> Edges:
    """All edges of these rows."""
    parts = [
        [column[places] for column in edges]
        for edges, of_part in (
            (index.base.edges, rows[~index.replaced[rows]]),
            (index.overlay.edges, rows[index.replaced[rows]]),
        )
        for places in [_edge_places(edges.near, of_part)]
    ]
    return Edges(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _edge_places(near: Numbers, seeds: IntArray) -> IntArray:
    wanted = seeds.astype(near.dtype)
    begins = np.searchsorted(near, wanted)
    return _ranges(begins, np.searchsorted(near, wanted, side="right") - begins)


def _find_session_edges(index: RecallIndex, seeds: IntArray, rows: IndexFilter) -> NeighbourEdges:
    """Edges to the two memories before and after in a session, the second of half the weight."""
    is_asked = np.zeros(index.session_count, np.bool_)
    is_asked[index.sessions[seeds]] = True
    is_asked[NO_SESSION] = False
    members = np.flatnonzero(is_asked[index.sessions[: index.count]])
    if not len(members):
        return NO_EDGES
    is_shown, is_seed = _is_visible(index, rows, members), is_among(seeds, members)
    members, is_shown = members[is_shown | is_seed], is_shown[is_shown | is_seed]
    records = index.records[members]
    order = np.lexsort(
        (records["id_low"], records["id_high"], records["created"], index.sessions[members])
    )
    return _pair_neighbours(index, members[order], is_shown[order], seeds)


def _pair_neighbours(
    index: RecallIndex, members: IntArray, is_shown: BoolArray, seeds: IntArray
) -> NeighbourEdges:
    """Pairs each seed with its shown neighbours in a row of members, sorted by session."""
    shown = members[is_shown].tolist()
    sessions = index.sessions[members[is_shown]].tolist()
    places = np.flatnonzero(is_among(seeds, members))
    # How many shown members stand before each seed.
    befores: list[int] = (np.cumsum(is_shown) - is_shown)[places].tolist()
    own = zip(members[places].tolist(), index.sessions[members[places]].tolist(), strict=True)
    pairs = [
        (seed, shown[other], step)
        for (seed, session), before, is_own in zip(own, befores, is_shown[places], strict=True)
        for step in range(1, MAX_STEPS + 1)
        for other in (before - step, before + step - (not is_own))
        if 0 <= other < len(shown) and sessions[other] == session
    ]
    near, far, steps = np.array(pairs, np.int64).reshape(-1, 3).T
    return NeighbourEdges(near, far, np.full(len(near), SESSION_KIND, np.uint8), 1.0 / steps)
