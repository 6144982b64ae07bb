"""The recall index: what ranking reads of a tenant's memories, in arrays that change in place.

Memories have a row each. The words, passages and edges of a changed memory move from the base,
which is built once, to a small overlay, which is built anew with each change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from reverie.domain.core.scope_patterns import scope_matches
from reverie.domain.retrieval.facts import (
    DELETED,
    FACTS,
    WHOLE,
    BoolArray,
    FactRecords,
    FactTable,
    IntArray,
    has_flag,
    list_ids,
)

Rows = NDArray[np.int32]
MAX_MATCHES = 64
"""Sets of scope patterns whose matches are remembered."""
MAX_CHANGED_SHARE = 8
"""An index of which one memory in so many has changed is worn."""
SPARE_SHARE, MIN_SPARE, LEAST_SPARE = 16, 1_024, 512
"""Rows for memories that are added later: one in so many, and at least so many.

With fewer than the last number it is worn.
"""


NO_SESSION = 0
"""The number of memories without a session."""


class WordEntries(NamedTuple):
    """Occurrences of words: the memory, the hash of the term, and how often it occurs there."""

    docs: IntArray
    terms: NDArray[np.int32]
    counts: NDArray[np.uint8]


class PassageEntries(NamedTuple):
    """Passages: the memory and the vector of each, and its learned sparse words.

    `vectors`: of length 1, as integers with a scale for each; so are the weights of the words.
    `sparse_sizes`: how many of the sparse words belong to each passage.
    """

    docs: IntArray
    vectors: NDArray[np.int16]
    scales: NDArray[np.float32]
    sparse_sizes: NDArray[np.int32]
    sparse_scales: NDArray[np.float32]
    sparse_words: NDArray[np.uint16]
    sparse_weights: NDArray[np.uint16]


class EdgeEntries(NamedTuple):
    """Open edges: the numbers of both memories, kind (a place in `EDGE_KINDS`), and weight."""

    sources: IntArray
    targets: IntArray
    kinds: NDArray[np.uint8]
    weights: NDArray[np.float32]


class IndexEntries(NamedTuple):
    """All that the index holds of some memories. `scopes`: in the order of the facts."""

    facts: FactRecords
    scopes: Sequence[str]
    words: WordEntries
    passages: PassageEntries
    edges: EdgeEntries


class Postings(NamedTuple):
    """The rows that contain each term, `terms[i]` from `begins[i]` on, and how often."""

    terms: NDArray[np.int32]
    begins: IntArray
    rows: Rows
    counts: NDArray[np.uint8]


class Passages(NamedTuple):
    """Passages as in `PassageEntries`, by row."""

    rows: Rows
    vectors: NDArray[np.int16]
    scales: NDArray[np.float32]
    sparse_sizes: NDArray[np.int32]
    sparse_scales: NDArray[np.float32]
    sparse_words: NDArray[np.uint16]
    sparse_weights: NDArray[np.uint16]


class Adjacency(NamedTuple):
    """Edges from each row, in the order of `near`: to which row, kind, and weight."""

    near: Rows
    far: Rows
    kinds: NDArray[np.uint8]
    weights: NDArray[np.float32]


class IndexPart(NamedTuple):
    """Words, passages and edges of some rows."""

    postings: Postings
    passages: Passages
    edges: Adjacency


@dataclass
class RecallIndex:
    """A tenant's index. `replaced`: rows of which the base no longer holds anything that is true.

    `scopes`, `sessions`, `statuses`, `kinds`, `lengths` (in words), `is_whole`: columns of the
    facts that are read for all rows.
    """

    records: FactRecords
    scopes: NDArray[np.int32]
    scope_names: list[str]
    base: IndexPart
    overlay: IndexPart
    replaced: BoolArray
    count: int
    base_docs: IntArray
    changed_count: int = 0
    statuses: NDArray[np.uint8] = field(init=False)
    kinds: NDArray[np.uint8] = field(init=False)
    lengths: NDArray[np.int32] = field(init=False)
    is_whole: BoolArray = field(init=False)
    sessions: NDArray[np.int32] = field(init=False)
    session_numbers: dict[int, int] = field(init=False)
    _new_rows: dict[int, int] = field(default_factory=dict)
    _scope_numbers: dict[str, int] = field(init=False)
    _matches: LRUCache[tuple[str, ...], BoolArray] = field(init=False)

    def __post_init__(self) -> None:
        self.statuses = self.records["status"].astype(np.uint8)
        self.kinds = self.records["kind"].astype(np.uint8)
        self.lengths = self.records["terms"].astype(np.int32)
        self.is_whole = has_flag(self.records, WHOLE)
        distinct, numbers = np.unique(
            np.append(np.uint64(0), self.records["session"]), return_inverse=True
        )
        self.sessions = numbers[1:].astype(np.int32)
        self.session_numbers = {session: number for number, session in enumerate(distinct.tolist())}
        self._scope_numbers = {name: number for number, name in enumerate(self.scope_names)}
        self._matches = LRUCache(MAX_MATCHES)

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        arrays: list[Any] = [self.records, self.scopes, self.replaced, self.base_docs]
        arrays += [self.sessions, self.statuses, self.kinds, self.lengths, self.is_whole]
        arrays += [array for part in (self.base, self.overlay) for group in part for array in group]
        return sum(array.nbytes for array in arrays)

    @property
    def is_worn(self) -> bool:
        """Whether so much has changed or was added that it should be built anew."""
        return (
            self.changed_count * MAX_CHANGED_SHARE > len(self.records) or self.spare < LEAST_SPARE
        )

    @property
    def spare(self) -> int:
        """The number of memories that can still be added."""
        return len(self.records) - self.count

    def find_rows(self, docs: IntArray) -> IntArray:
        """The rows of memories, -1 for those that are not there."""
        if not len(self.base_docs):
            return np.array([self._new_rows.get(doc, -1) for doc in docs.tolist()], np.int64)
        rows = np.minimum(np.searchsorted(self.base_docs, docs), len(self.base_docs) - 1)
        missing = self.base_docs[rows] != docs
        if missing.any():
            rows[missing] = [self._new_rows.get(doc, -1) for doc in docs[missing].tolist()]
        return rows

    def match_scopes(self, patterns: Sequence[str]) -> BoolArray:
        """Which rows have a scope that one of the patterns covers."""
        key = tuple(patterns)
        matches = self._matches.get(key, np.empty(0, np.bool_))
        if len(matches) < len(self.scope_names):
            new = [
                any(scope_matches(pattern, name) for pattern in patterns)
                for name in self.scope_names[len(matches) :]
            ]
            matches = self._matches[key] = np.append(matches, new)
        covered = matches[self.scopes] if len(matches) else np.zeros(len(self.scopes), np.bool_)
        covered[self.count :] = False
        return covered

    def get_facts(self, rows: IntArray, wanted: BoolArray) -> FactTable:
        """The facts of rows, of which the filter lets `wanted` through."""
        return FactTable(self.records[rows], wanted[rows], self.scopes[rows], self.scope_names)

    def apply(self, entries: IndexEntries, removed: Iterable[UUID] = ()) -> None:
        """Replaces what is known of memories; at most `spare` of them may be new.

        `removed`: memories that no longer exist.
        """
        docs = entries.facts["doc"]
        rows = self.find_rows(docs)
        for place in np.flatnonzero(rows < 0).tolist():
            rows[place] = self._new_rows[int(docs[place])] = self.count
            self.count += 1
        self.records[rows] = entries.facts
        self.scopes[rows] = [self._number_scope(name) for name in entries.scopes]
        self.statuses[rows] = entries.facts["status"]
        self.kinds[rows] = entries.facts["kind"]
        self.lengths[rows] = entries.facts["terms"]
        self.is_whole[rows] = has_flag(entries.facts, WHOLE)
        self.sessions[rows] = [
            self.session_numbers.setdefault(session, len(self.session_numbers))
            for session in entries.facts["session"].tolist()
        ]
        gone = self._find_ids(removed)
        self.statuses[gone], self.lengths[gone] = DELETED, 0
        rows = np.concatenate([rows, gone])
        self.changed_count += int(np.count_nonzero(~self.replaced[rows]))
        self.replaced[rows] = True
        is_changed = np.zeros(len(self.records), np.bool_)
        is_changed[rows] = True
        self.overlay = _merge(self.overlay, ~is_changed, self._build_part(entries, is_changed))

    def set_ranks(self, docs: IntArray, ranks: NDArray[np.float32]) -> None:
        """Replaces all ranks."""
        rows = self.find_rows(docs)
        self.records["rank"] = 0.0
        self.records["rank"][rows[rows >= 0]] = ranks[rows >= 0]

    def set_uses(self, docs: IntArray, moments: IntArray, boosts: NDArray[np.float32]) -> None:
        """Replaces the last use and the boost of some memories."""
        rows = self.find_rows(docs)
        known = rows >= 0
        self.records["used"][rows[known]] = moments[known]
        self.records["boost"][rows[known]] = boosts[known]

    def _number_scope(self, name: str) -> int:
        number = self._scope_numbers.setdefault(name, len(self.scope_names))
        if number == len(self.scope_names):
            self.scope_names.append(name)
        return number

    def _find_ids(self, ids: Iterable[UUID]) -> IntArray:
        """The rows of memories by id, those that are there."""
        wanted = {memory_id.int for memory_id in ids}
        low = np.array([number & ((1 << 64) - 1) for number in wanted], np.uint64)
        records = self.records[: self.count]
        rows = np.flatnonzero(np.isin(records["id_low"], low)) if wanted else np.empty(0, np.int64)
        found = [id.int in wanted for id in list_ids(records[rows])]
        return rows[np.array(found, np.bool_)]

    def _build_part(self, entries: IndexEntries, is_own: BoolArray) -> IndexPart:
        """The entries by row; edges from those rows only."""
        word_rows = self.find_rows(entries.words.docs).astype(np.int32)
        passages = entries.passages
        passage_rows = self.find_rows(passages.docs).astype(np.int32)
        ends = entries.edges
        near, far = self.find_rows(ends.sources), self.find_rows(ends.targets)
        near, far = np.concatenate([near, far]), np.concatenate([far, near])
        kinds, weights = np.tile(ends.kinds, 2), np.tile(ends.weights, 2)
        keep = (near >= 0) & (far >= 0) & is_own[near]
        edges = Adjacency(
            near[keep].astype(np.int32), far[keep].astype(np.int32), kinds[keep], weights[keep]
        )
        return IndexPart(
            _build_postings(entries.words.terms, word_rows, entries.words.counts),
            Passages(passage_rows, *passages[1:]),
            _sort_edges(edges),
        )


def build_index(entries: IndexEntries) -> RecallIndex:
    """Builds the index of all memories of a tenant, whose facts are in the order of numbers."""
    count = len(entries.facts)
    size = count + max(count // SPARE_SHARE, MIN_SPARE)
    records = np.zeros(size, FACTS)
    records[:count] = entries.facts
    records["status"][count:] = DELETED
    nothing = _empty_part(entries.passages.vectors.shape[1])
    index = RecallIndex(
        records,
        np.zeros(size, np.int32),
        [],
        nothing,
        nothing,
        np.zeros(size, np.bool_),
        count,
        entries.facts["doc"].astype(np.int64),
    )
    index.scopes[:count] = [index._number_scope(name) for name in entries.scopes]
    index.base = index._build_part(entries, np.ones(size, np.bool_))
    return index


def _empty_part(dims: int) -> IndexPart:
    rows, counts = np.empty(0, np.int32), np.empty(0, np.uint8)
    floats, words = np.empty(0, np.float32), np.empty(0, np.uint16)
    return IndexPart(
        _build_postings(rows, rows, counts),
        Passages(rows, np.empty((0, dims), np.int16), floats, rows, floats, words, words),
        Adjacency(rows, rows, counts, floats),
    )


def _build_postings(terms: NDArray[np.int32], rows: Rows, counts: NDArray[np.uint8]) -> Postings:
    order = np.argsort(terms, kind="stable")
    distinct, begins = np.unique(terms[order], return_index=True)
    return Postings(distinct, np.append(begins, len(terms)), rows[order], counts[order])


def _sort_edges(edges: Adjacency) -> Adjacency:
    order = np.argsort(edges.near, kind="stable")
    return Adjacency._make(column[order] for column in edges)


def _merge(old: IndexPart, stays: BoolArray, new: IndexPart) -> IndexPart:
    """The new part, and of the old one the rows that stay."""
    word, passage = stays[old.postings.rows], stays[old.passages.rows]
    sparse, edge = np.repeat(passage, old.passages.sparse_sizes), stays[old.edges.near]
    kept_passages = [column[passage] for column in tuple[Any, ...](old.passages[:5])]
    kept_passages += [column[sparse] for column in tuple[Any, ...](old.passages[5:])]
    kept_edges = [column[edge] for column in tuple[Any, ...](old.edges)]
    return IndexPart(
        _build_postings(
            np.concatenate([_list_terms(old.postings)[word], _list_terms(new.postings)]),
            np.concatenate([old.postings.rows[word], new.postings.rows]),
            np.concatenate([old.postings.counts[word], new.postings.counts]),
        ),
        Passages._make(_join(kept_passages, new.passages)),
        _sort_edges(Adjacency._make(_join(kept_edges, new.edges))),
    )


def _list_terms(postings: Postings) -> NDArray[np.int32]:
    """The term of each posting."""
    return np.repeat(postings.terms, np.diff(postings.begins))


def _join(old: Sequence[Any], new: Sequence[Any]) -> Iterator[NDArray[Any]]:
    """Columns with more behind them."""
    return (np.concatenate(both) for both in zip(old, new, strict=True))
