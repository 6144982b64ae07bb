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
from reverie.domain.retrieval.ranking_facts import (
    DELETED,
    FACTS,
    WHOLE,
    BoolArray,
    FactRecords,
    FactTable,
    IntArray,
    Numbers,
    has_flag,
    list_ids,
)

Rows = NDArray[np.int32]
MAX_MATCHES = 64
"""How many sets of scope patterns have their matching rows cached."""
MAX_CHANGED_SHARE = 8
"""An index is worn, and loaded again, once one memory in this many has changed."""
SPARE_SHARE, MIN_SPARE = 16, 896
"""Spare rows for memories that are added later: one for this many memories, and at least 896."""
LEAST_SPARE = 512
"""With fewer spare rows left, an index is worn."""
MAX_INTEGER, MAX_SCALE, MAX_WEIGHT = 2**15 - 1, 2**8 - 1, 2**16 - 1
"""The integers that stand for 1 in vectors, in their scales, and in weights."""
MAX_COMPARED = 20_000
"""Up to this many passages are all compared with a question; of more, the signs come first."""
NO_SESSION = 0
"""The number of memories without a session."""


class WordEntries(NamedTuple):
    """Occurrences of words: the memory, the hash of the term, and how often it occurs there."""

    docs: IntArray
    terms: NDArray[np.int32]
    counts: NDArray[np.uint8]


class Passages(NamedTuple):
    """Passages: the memory and the vector of each, and its learned sparse words.

    `memories`: their numbers in entries, their rows in an index. `vectors`: of length 1, as
    integers with a scale for each; so are the weights of the words. `sparse_sizes`: how many of the
    sparse words belong to each passage.
    """

    memories: Numbers
    vectors: NDArray[np.int16]
    scales: NDArray[np.uint8]
    sparse_sizes: NDArray[np.uint8]
    sparse_scales: NDArray[np.float32]
    sparse_words: NDArray[np.uint16]
    sparse_weights: NDArray[np.uint16]


class Edges(NamedTuple):
    """Open edges: the numbers of both memories, kind (a place in `EDGE_KINDS`), and weight, in
    shares of `MAX_WEIGHT`.

    In an index they are rows, and each edge is there from both ends, in the order of `near`.
    """

    near: Numbers
    far: Numbers
    kinds: NDArray[np.uint8]
    weights: NDArray[np.uint16]


class IndexEntries(NamedTuple):
    """All that the index holds of some memories.

    `sessions` (8 bytes of each, 0 for none), `lengths` (in words), `scopes`: in the order of facts.
    """

    facts: FactRecords
    sessions: NDArray[np.uint64]
    lengths: NDArray[np.int32]
    scopes: Sequence[str]
    words: WordEntries
    passages: Passages
    edges: Edges


class Postings(NamedTuple):
    """The rows that contain each term, `terms[i]` from `begins[i]` on, and how often."""

    terms: NDArray[np.int32]
    begins: NDArray[np.int32]
    rows: Rows
    counts: NDArray[np.uint8]


class IndexPart(NamedTuple):
    """Words, passages and edges of some rows."""

    postings: Postings
    passages: Passages
    edges: Edges


@dataclass
class RecallIndex:
    """A tenant's index. `replaced`: rows whose entries in the base are outdated.

    `scopes`, `sessions`, `lengths`: a column each, the first two by number. `statuses`, `kinds`,
    `is_whole`: columns of the facts that are read for all rows. `base_sessions`: the sessions of
    the base, sorted, from number 0 on. `base_signs`: the signs of the vectors of the base, if there
    are many.
    """

    records: FactRecords
    scopes: NDArray[np.int32]
    scope_names: list[str]
    sessions: NDArray[np.int32]
    base_sessions: NDArray[np.uint64]
    lengths: NDArray[np.int32]
    base: IndexPart
    overlay: IndexPart
    replaced: BoolArray
    count: int
    base_docs: IntArray
    base_signs: NDArray[np.uint64] | None = None
    changed_count: int = 0
    statuses: NDArray[np.uint8] = field(init=False)
    kinds: NDArray[np.uint8] = field(init=False)
    is_whole: BoolArray = field(init=False)
    _new_rows: dict[int, int] = field(default_factory=dict)
    _new_sessions: dict[int, int] = field(default_factory=dict)
    _scope_numbers: dict[str, int] = field(init=False)
    _matches: LRUCache[tuple[str, ...], BoolArray] = field(init=False)

    def __post_init__(self) -> None:
        self.statuses = self.records["status"].astype(np.uint8)
        self.kinds = self.records["kind"].astype(np.uint8)
        self.is_whole = has_flag(self.records, WHOLE)
        self._scope_numbers = {name: number for number, name in enumerate(self.scope_names)}
        self._matches = LRUCache(MAX_MATCHES)

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        arrays: list[Any] = [self.records, self.scopes, self.replaced, self.base_docs]
        arrays += [self.sessions, self.base_sessions, self.lengths]
        arrays += [self.statuses, self.kinds, self.is_whole]
        arrays += [] if self.base_signs is None else [self.base_signs]
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

    def find_rows(self, docs: Numbers) -> IntArray:
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

    def get_facts(self, rows: IntArray, passes: BoolArray) -> FactTable:
        """The facts of rows. `passes`: which memories the filter lets through."""
        return FactTable(self.records[rows], passes[rows], self.scopes[rows], self.scope_names)

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
        self.lengths[rows] = entries.lengths
        self.is_whole[rows] = has_flag(entries.facts, WHOLE)
        self.sessions[rows] = [self._number_session(key) for key in entries.sessions]
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

    @property
    def session_count(self) -> int:
        """How many sessions have a number."""
        return len(self.base_sessions) + len(self._new_sessions)

    def _number_session(self, key: np.uint64) -> int:
        number = int(np.searchsorted(self.base_sessions, key))
        if number < len(self.base_sessions) and self.base_sessions[number] == key:
            return number
        return self._new_sessions.setdefault(int(key), self.session_count)

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
        passages, edges = entries.passages, entries.edges
        passage_rows = self.find_rows(passages.memories).astype(np.int32)
        ends = [self.find_rows(column).astype(np.int32) for column in (edges.near, edges.far)]
        both = Edges(
            np.concatenate(ends),
            np.concatenate(ends[::-1]),
            np.tile(edges.kinds, 2),
            np.tile(edges.weights, 2),
        )
        kept = (both.near >= 0) & (both.far >= 0) & is_own[both.near]
        return IndexPart(
            _build_postings(entries.words.terms, word_rows, entries.words.counts),
            passages._replace(memories=passage_rows),
            _sort_edges(Edges._make(column[kept] for column in both)),
        )


def build_index(entries: IndexEntries) -> RecallIndex:
    """Builds the index of all memories of a tenant, whose facts are in the order of numbers."""
    count = len(entries.facts)
    size = count + max(count // SPARE_SHARE, MIN_SPARE)
    records = np.zeros(size, FACTS)
    records[:count] = entries.facts
    records["status"][count:] = DELETED
    nothing = _empty_part(entries.passages.vectors.shape[1])
    base_sessions, numbers = np.unique(
        np.append(np.uint64(0), entries.sessions), return_inverse=True
    )
    index = RecallIndex(
        records,
        np.zeros(size, np.int32),
        [],
        np.zeros(size, np.int32),
        base_sessions,
        np.zeros(size, np.int32),
        nothing,
        nothing,
        np.zeros(size, np.bool_),
        count,
        entries.facts["doc"].astype(np.int64),
    )
    index.sessions[:count], index.lengths[:count] = numbers[1:], entries.lengths
    index.scopes[:count] = [index._number_scope(name) for name in entries.scopes]
    index.base = index._build_part(entries, np.ones(size, np.bool_))
    if len(entries.passages.vectors) > MAX_COMPARED:
        index.base_signs = pack_signs(entries.passages.vectors)
    return index


def pack_signs(vectors: NDArray[Any]) -> NDArray[np.uint64]:
    """Which numbers of vectors are positive: 64 of them in one, a column for each vector."""
    packed = np.packbits(vectors > 0, axis=1)
    padded = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _empty_part(dims: int) -> IndexPart:
    rows, counts = np.empty(0, np.int32), np.empty(0, np.uint8)
    scales, words = np.empty(0, np.float32), np.empty(0, np.uint16)
    return IndexPart(
        _build_postings(rows, rows, counts),
        Passages(rows, np.empty((0, dims), np.int16), counts, counts, scales, words, words),
        Edges(rows, rows, counts, words),
    )


def _build_postings(terms: NDArray[np.int32], rows: Rows, counts: NDArray[np.uint8]) -> Postings:
    order = np.argsort(terms, kind="stable")
    distinct, begins = np.unique(terms[order], return_index=True)
    all_begins = np.append(begins, len(terms)).astype(np.int32)
    return Postings(distinct, all_begins, rows[order], counts[order])


def _sort_edges(edges: Edges) -> Edges:
    order = np.argsort(edges.near, kind="stable")
    return Edges._make(column[order] for column in edges)


def _merge(old: IndexPart, stays: BoolArray, new: IndexPart) -> IndexPart:
    """The new part, and of the old one the rows that stay."""
    word, passage = stays[old.postings.rows], stays[old.passages.memories]
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
        _sort_edges(Edges._make(_join(kept_edges, new.edges))),
    )


def _list_terms(postings: Postings) -> NDArray[np.int32]:
    """The term of each posting."""
    return np.repeat(postings.terms, np.diff(postings.begins))


def _join(old: Sequence[Any], new: Sequence[Any]) -> Iterator[NDArray[Any]]:
    """Columns with more behind them."""
    return (np.concatenate(both) for both in zip(old, new, strict=True))
