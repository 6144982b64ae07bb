"""Caches the postings of frequently read tenants and scores them with BM25."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import asyncpg
import numpy as np
from numpy.typing import NDArray

from reverie.store.db.database import Database, TenantConnection
from reverie.store.search.corpus_counts import CorpusStats
from reverie.store.search.tenant_cache import CacheKey, TenantCache

MIN_MEMORIES = 2_000
"""Memories from which on postings are kept."""
MAX_POSTINGS = 10_000_000
"""Maximum postings of a cached tenant: they are read as one value, of 14 bytes each."""
POSTING_BYTES = 6
PART_SIZE = 1 << 18
CHANGED_SHARE, MAX_CHANGED = 50, 1_000
"""Largest share of memories with changed words, one in so many.

With more, Postgres runs the whole search, which is faster then. With half as many, the cache is
read again.
"""
MAX_AGE_SECONDS = 600.0
"""Maximum age of the cache, because of deletions and manual repairs."""
TABLE = "posting_entry"

_POSTING = np.dtype([("doc", ">i8"), ("tf", ">i2"), ("len", ">i4")])

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
ScoreArray = NDArray[np.float32]


class TopDocuments(NamedTuple):
    """Documents with their scores, best first; `complete`: no other has any."""

    docs: list[int]
    scores: list[float]
    complete: bool


@dataclass(frozen=True)
class DocumentScores:
    """The score of each document, 0 if it contains none of the words."""

    docs: IntArray
    scores: ScoreArray

    def top(self, count: int | None = None) -> TopDocuments:
        """Returns the best `count` (None: all with a score), ties by document."""
        found = np.flatnonzero(self.scores)
        complete = count is None or len(found) <= count
        if count is not None and not complete:
            minimum = np.partition(self.scores[found], -count)[-count]
            found = found[self.scores[found] >= minimum]
        chosen = found[np.lexsort((self.docs[found], -self.scores[found]))[:count]]
        return TopDocuments(self.docs[chosen].tolist(), self.scores[chosen].tolist(), complete)


@dataclass
class CachedPostings:
    """A tenant's postings in one snapshot of one table, `source`.

    `since`: the oldest transaction running then. `docs` and `lengths` (in words): of each document.
    The postings of the term `terms[i]` are those from `begins[i]` to `ends[i]`: the `doc_indexes`
    and the occurrences in each.
    """

    source: str
    since: str
    docs: IntArray
    lengths: FloatArray
    terms: IntArray
    begins: IntArray
    ends: IntArray
    doc_indexes: NDArray[np.int32]
    frequencies: NDArray[np.int16]
    read_at: float

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        of_terms = self.terms.nbytes + self.begins.nbytes + self.ends.nbytes
        of_documents = self.docs.nbytes + self.lengths.nbytes
        return of_terms + of_documents + self.doc_indexes.nbytes + self.frequencies.nbytes

    @property
    def max_changed(self) -> int:
        """Maximum number of changed memories; a power of two, because it is part of a statement."""
        return min(MAX_CHANGED, 1 << (len(self.docs) // CHANGED_SHARE).bit_length())

    def find_postings(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
        """Returns the indexes of documents with a term, and its occurrences in each."""
        position = int(np.searchsorted(self.terms, term))
        if position == len(self.terms) or self.terms[position] != term:
            return self.doc_indexes[:0], self.frequencies[:0]
        part = slice(self.begins[position], self.ends[position])
        return self.doc_indexes[part], self.frequencies[part]


@dataclass(frozen=True)
class PostingQuery:
    """The terms of a question, and what has changed since.

    `changed_postings`: rows of (term, document, occurrences, length) of the documents of `changed`.
    """

    terms: Sequence[int]
    changed: IntArray
    changed_postings: IntArray


def score_documents(
    cached: CachedPostings, query: PostingQuery, corpus: CorpusStats
) -> DocumentScores:
    """Each document's score by BM25 (k1 1.2, b 0.75)."""
    changed = np.sort(query.changed)
    positions = np.searchsorted(cached.docs, changed)
    stale = positions[cached.docs[np.minimum(positions, len(cached.docs) - 1)] == changed]
    scores = np.zeros(len(cached.docs) + len(changed))
    mean = _effective_length(corpus.mean_length)
    for indexes, tf, length, df in _iterate_terms(cached, query, changed, stale):
        idf = math.log(1 + (max(corpus.documents, df) - df + 0.5) / (df + 0.5))
        norm = 1.2 * (0.25 + 0.75 * _effective_length(length) / mean)
        scores[indexes] += idf * tf * 2.2 / (tf + norm)
    scores[stale] = 0.0
    return DocumentScores(np.concatenate([cached.docs, changed]), scores.astype(np.float32))


def _effective_length(length: Any) -> Any:
    """Effective document lengths in words: see `search_words`."""
    return np.maximum(length, 18 + 0.1 * length)


def _iterate_terms(
    cached: CachedPostings, query: PostingQuery, changed: IntArray, stale: IntArray
) -> Iterator[tuple[Any, FloatArray, FloatArray, float]]:
    """Of each term the places in all documents, occurrences and lengths there, and how many."""
    is_replaced = np.zeros(len(cached.docs), bool)
    is_replaced[stale] = True
    for term in query.terms:
        indexes, frequencies = cached.find_postings(term)
        tf, length = frequencies.astype(np.float64), cached.lengths[indexes]
        df = len(indexes)
        if len(changed):
            term_postings = query.changed_postings[query.changed_postings[:, 0] == term]
            df += len(term_postings) - int(np.count_nonzero(is_replaced[indexes]))
            new = len(cached.docs) + np.searchsorted(changed, term_postings[:, 1])
            indexes = np.concatenate([indexes, new])
            tf, length = (
                np.concatenate([tf, term_postings[:, 2]]),
                np.concatenate([length, term_postings[:, 3]]),
            )
        if df:
            yield indexes, tf, length, float(df)


class PostingCache(TenantCache[CachedPostings]):
    """Keeps at most `megabytes` of postings, those of the tenants that asked last."""

    def __init__(self, database: Database, megabytes: int) -> None:
        super().__init__(megabytes)
        self._db = database

    @property
    def _max_postings(self) -> int:
        return min(MAX_POSTINGS, self._capacity // POSTING_BYTES)

    async def score(
        self, connection: TenantConnection, text: str, corpus: CorpusStats
    ) -> DocumentScores | None:
        """Scores each document for the prepared question; None if the cache cannot decide."""
        if not self._is_worthwhile(connection, corpus):
            return None
        key = (connection.id, TABLE)
        cached = self._lookup(key)
        if cached is None:
            return None
        row = await connection.fetch_row(
            "posting_changes", text, cached.since, cached.source, cached.max_changed + 1
        )
        if row is None or not self._is_current(key, cached, row):
            return None
        changed_postings = np.array(row["held"], np.int64).reshape(-1, 4)
        query = PostingQuery(row["terms"], np.array(row["fresh"], np.int64), changed_postings)
        return score_documents(cached, query, corpus)

    def _is_worthwhile(self, connection: TenantConnection, corpus: CorpusStats) -> bool:
        # No memory has more postings than words; a good half of its words have one.
        min_postings = corpus.documents * corpus.mean_length / 2
        fits = corpus.documents >= MIN_MEMORIES and min_postings <= self._max_postings
        return fits and self._db.is_frequent_reader(connection.id)

    def _is_current(self, key: CacheKey, cached: CachedPostings, row: asyncpg.Record) -> bool:
        """Whether the table is the one that was read, and few memories have changed since."""
        if not row["same"]:
            self._drop(key)
            return False
        changed = len(row["fresh"])
        if changed > cached.max_changed // 2 or time.monotonic() - cached.read_at > MAX_AGE_SECONDS:
            self._request(key)
        return changed <= cached.max_changed

    async def _load(self, key: CacheKey) -> CachedPostings | None:
        max_postings, now = self._max_postings, time.monotonic()
        async with self._db.tenant_reader(key[0]) as connection:
            row = await connection.fetch_row("postings_all", max_postings + 1)
        if row is None or row["postings"] is None:
            return None
        if len(row["postings"]) > max_postings * _POSTING.itemsize:
            return None
        return await asyncio.to_thread(_decode_postings, row, now)


def _decode_postings(row: asyncpg.Record, now: float) -> CachedPostings:
    postings = np.frombuffer(row["postings"], _POSTING)
    # A part at a time, for there may be millions, and what is made of them is a third as large.
    parts = [postings[start : start + PART_SIZE] for start in range(0, len(postings), PART_SIZE)]
    docs = np.unique(np.concatenate([np.unique(_to_int64(part["doc"])) for part in parts]))
    lengths, all_indexes = np.zeros(len(docs)), np.empty(len(postings), np.int32)
    for number, part in enumerate(parts):
        doc_indexes = np.searchsorted(docs, _to_int64(part["doc"]))
        all_indexes[number * PART_SIZE :][: len(part)] = doc_indexes
        lengths[doc_indexes] = part["len"]
    terms = _to_int64(np.frombuffer(row["terms"], ">i8"))
    counts = _to_int64(np.frombuffer(row["counts"], ">i4"))
    ends, order = np.cumsum(counts), np.argsort(terms)
    return CachedPostings(
        row["source"],
        row["since"],
        docs,
        lengths,
        terms[order],
        (ends - counts)[order],
        ends[order],
        all_indexes,
        postings["tf"].astype(np.int16),
        now,
    )


def _to_int64(values: NDArray[Any]) -> IntArray:
    return values.astype(np.int64)
