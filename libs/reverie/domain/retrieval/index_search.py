"""Searches a recall index: words, vectors, sparse words, and edges of the graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reverie.domain.retrieval.candidates import (
    NO_EDGES,
    NO_HITS,
    ArmHits,
    NeighbourEdges,
    sort_by_score,
)
from reverie.domain.retrieval.facts import (
    ACTIVE,
    KINDS,
    STATUSES,
    SUPERSEDED,
    BoolArray,
    FloatArray,
    IntArray,
)
from reverie.domain.retrieval.graph_expansion import SESSION_KIND
from reverie.domain.retrieval.recall_index import (
    Adjacency,
    Passages,
    Postings,
    RecallIndex,
    Rows,
)

K1, B = 1.2, 0.75
SHORT_TEXT_WORDS = 18
"""Shorter texts count as nearly that long, because each contains one statement."""
VECTORS_AT_ONCE = 1_024
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
    scores = np.zeros(len(index.records))
    parts = (
        (index.base.postings, rows.readable & ~index.replaced),
        (index.overlay.postings, rows.readable),
    )
    for term in terms.tolist():
        found, counts = _find_postings(parts, term)
        idf = math.log1p((documents - len(found) + 0.5) / (len(found) + 0.5))
        norms = K1 * (1 - B + B * _effective_length(index.lengths[found]) / mean)
        scores[found] += idf * counts * (K1 + 1) / (counts + norms)
    is_hit = rows.wanted & (scores > 0)
    return _take_best(index, np.where(is_hit, scores, -np.inf).astype(np.float32), limit)


def _effective_length(length: NDArray[np.int32] | float) -> FloatArray:
    return np.maximum(length, SHORT_TEXT_WORDS + 0.1 * np.asarray(length, np.float64))


def _find_postings(
    parts: Sequence[tuple[Postings, BoolArray]], term: int
) -> tuple[Rows, FloatArray]:
    """The rows with a term, of those that each part may show, and its occurrences in each."""
    all_rows, all_counts = [], []
    for postings, usable in parts:
        part = _slice_of(postings, term)
        rows = postings.rows[part]
        kept = usable[rows]
        all_rows.append(rows[kept])
        all_counts.append(postings.counts[part][kept])
    return np.concatenate(all_rows), np.concatenate(all_counts).astype(np.float64)


def _slice_of(postings: Postings, term: int) -> slice:
    place = int(np.searchsorted(postings.terms, term))
    if place == len(postings.terms) or postings.terms[place] != term:
        return slice(0, 0)
    return slice(int(postings.begins[place]), int(postings.begins[place + 1]))


def _take_best(index: RecallIndex, scores: NDArray[np.float32], limit: int) -> ArmHits:
    """The best rows with a score, ties by number."""
    found = np.flatnonzero(np.isfinite(scores))
    if len(found) > limit:
        least = np.partition(scores[found], -limit)[-limit]
        found = found[scores[found] >= least]
    docs = index.records["doc"][found]
    best = scores[found].astype(np.float64)
    order = sort_by_score(docs, best)[:limit]
    return ArmHits(docs[order], best[order])


def search_vectors(
    index: RecallIndex, vectors: Sequence[NDArray[np.float32]], rows: IndexFilter, limit: int
) -> ArmHits:
    """The nearest rows by the cosine of their nearest passage to the nearest of the vectors."""
    # In 16 bits, as Postgres is asked.
    queries = np.stack(vectors).astype(np.float16).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    cosines = np.full(len(index.records), -np.inf, np.float32)
    for passages, usable in _usable_passages(index, rows.wanted):
        for start in range(0, len(passages.rows), VECTORS_AT_ONCE):
            block = slice(start, start + VECTORS_AT_ONCE)
            block_rows = passages.rows[block]
            is_used = usable[block_rows]
            if is_used.any():
                similar = passages.vectors[block].astype(np.float32) @ queries.T
                best = np.where(is_used, similar.max(axis=1) * passages.scales[block], -np.inf)
                np.maximum.at(cosines, block_rows, best)
    return _take_best(index, cosines, limit)


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
        chosen = np.flatnonzero(usable[passages.rows] & (passages.sparse_sizes > 0))
        ends = np.cumsum(passages.sparse_sizes)
        sizes = passages.sparse_sizes[chosen]
        places = _ranges(ends[chosen] - sizes, sizes)
        parts = question[passages.sparse_words[places]] * passages.sparse_weights[places]
        rows.append(passages.rows[chosen])
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
    status = index.statuses
    visible = rows.readable & ((status == ACTIVE) | (status == SUPERSEDED))
    seeds = index.find_rows(docs)
    near, far, kinds, weights = _edges_of(index, seeds)
    kept = np.flatnonzero(visible[far])
    numbers = index.records["doc"]
    order = kept[np.lexsort((kinds[kept], numbers[far[kept]], -weights[kept], near[kept]))]
    sorted_near = near[order]
    place = np.arange(len(order)) - np.searchsorted(sorted_near, sorted_near)
    order = order[place < fan_out]
    sessions = _find_session_edges(index, seeds, visible)
    return NeighbourEdges(
        np.concatenate([numbers[near[order]], numbers[sessions.near]]),
        np.concatenate([numbers[far[order]], numbers[sessions.far]]),
        np.concatenate([kinds[order], sessions.kinds]),
        np.concatenate([weights[order].astype(np.float64), sessions.weights]),
    )


def has_edges_among(index: RecallIndex, docs: IntArray) -> bool:
    """Whether any two memories of a list have an edge."""
    rows = index.find_rows(docs)
    return bool(np.isin(_edges_of(index, rows[rows >= 0]).far, rows).any())


def _edges_of(index: RecallIndex, rows: IntArray) -> Adjacency:
    """All edges of these rows."""
    parts = [
        [column[places] for column in edges]
        for edges, of_part in (
            (index.base.edges, rows[~index.replaced[rows]]),
            (index.overlay.edges, rows[index.replaced[rows]]),
        )
        for places in [_edge_places(edges.near, of_part)]
    ]
    return Adjacency(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _edge_places(near: Rows, seeds: IntArray) -> IntArray:
    begins = np.searchsorted(near, seeds)
    return _ranges(begins, np.searchsorted(near, seeds, side="right") - begins)


def _find_session_edges(index: RecallIndex, seeds: IntArray, visible: BoolArray) -> NeighbourEdges:
    """Edges to the two memories before and after in a session, the second of half the weight."""
    sessions = index.records["session"][: index.count]
    asked = np.unique(sessions[seeds])
    asked = asked[asked != 0]
    if not len(asked):
        return NO_EDGES
    is_member = asked[np.searchsorted(asked[:-1], sessions)] == sessions
    is_member &= visible[: index.count]
    is_member[seeds] |= sessions[seeds] != 0
    members = np.flatnonzero(is_member)
    records = index.records[members]
    members = members[
        np.lexsort((records["id_low"], records["id_high"], records["created"], records["session"]))
    ]
    return _pair_neighbours(members, sessions[members], seeds, visible)


def _pair_neighbours(
    members: IntArray, sessions: NDArray[np.uint64], seeds: IntArray, visible: BoolArray
) -> NeighbourEdges:
    """Pairs each seed with its visible neighbours in a row of members, sorted by session."""
    near, far, steps = [], [], []
    shown = visible[members]
    # How many visible members stand before each place, and where the n-th of them is.
    before: IntArray = np.cumsum(shown) - shown
    places = np.flatnonzero(shown)
    is_seed = np.isin(members, seeds)
    for position in np.flatnonzero(is_seed).tolist():
        own = int(before[position])
        for step in range(1, MAX_STEPS + 1):
            for other in (own - step, own + step - (not shown[position])):
                if 0 <= other < len(places) and sessions[places[other]] == sessions[position]:
                    near.append(members[position])
                    far.append(members[places[other]])
                    steps.append(step)
    return NeighbourEdges(
        np.array(near, np.int64),
        np.array(far, np.int64),
        np.full(len(near), SESSION_KIND, np.uint8),
        1.0 / np.array(steps, np.float64),
    )
