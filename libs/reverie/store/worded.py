"""Postings of the tenants that ask most, kept in memory: BM25 over them is sums of arrays.

What is kept is as old as it may be: a search first asks whose words have changed since
(`words_asked`) and reckons these from what it is told, then looks the best up (`words_found`), so
that nothing is found that is gone or may not be read. The scores are those of `search_words`, in 32
bits as there; only a word's rarity still counts what was deleted since.
"""

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

from reverie.store.counts import Corpus
from reverie.store.database import Database, Tenant
from reverie.store.shelf import Name, Shelf

LEAST = 2_000
"""Memories from which on postings are kept."""
MOST = 10_000_000
"""Postings of a tenant up to which they are kept: they come in one value, of 14 bytes each."""
POSTING_BYTES = 6
PART = 1 << 18
ONE_IN, MOST_FRESH = 50, 1_000
"""Memories whose words have changed since, one in so many: with more, Postgres does all of it,
which is quicker then. With half as many all is read again."""
OLD_SECONDS = 600.0
"""What is older is read again, for what was deleted and what an operator mended."""
TABLE = "posting_entry"

_POSTING = np.dtype([("doc", ">i8"), ("tf", ">i2"), ("len", ">i4")])

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Scores = NDArray[np.float32]


class Best(NamedTuple):
    """Documents with their scores, best first; `whole`: no other has any."""

    docs: list[int]
    scores: list[float]
    whole: bool


@dataclass(frozen=True)
class Told:
    """The score of each document, 0 where it holds none of the words."""

    docs: Whole
    scores: Scores

    def first(self, many: int | None = None) -> Best:
        """The best `many` (None: all that have any), ties by document."""
        found = np.flatnonzero(self.scores)
        whole = many is None or len(found) <= many
        if many is not None and not whole:
            least = np.partition(self.scores[found], -many)[-many]
            found = found[self.scores[found] >= least]
        chosen = found[np.lexsort((self.docs[found], -self.scores[found]))[:many]]
        return Best(self.docs[chosen].tolist(), self.scores[chosen].tolist(), whole)


@dataclass
class Kept:
    """A tenant's postings as they were in one snapshot of one table, `source`.

    `since`: the oldest transaction under way then. `docs` and `lengths` in words: of each document.
    Of the term `terms[i]`, in order, the postings from `begins[i]` to `ends[i]` tell the `places`
    of documents and how often it occurs there.
    """

    source: str
    since: str
    docs: Whole
    lengths: Floats
    terms: Whole
    begins: Whole
    ends: Whole
    places: NDArray[np.int32]
    occurs: NDArray[np.int16]
    read_at: float

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        of_terms = self.terms.nbytes + self.begins.nbytes + self.ends.nbytes
        of_documents = self.docs.nbytes + self.lengths.nbytes
        return of_terms + of_documents + self.places.nbytes + self.occurs.nbytes

    @property
    def most_fresh(self) -> int:
        """How many may have changed; a power of two, for it is part of a statement."""
        return min(MOST_FRESH, 1 << (len(self.docs) // ONE_IN).bit_length())

    def postings(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
        """The places of the documents that hold a term, and how often each does."""
        at = int(np.searchsorted(self.terms, term))
        if at == len(self.terms) or self.terms[at] != term:
            return self.places[:0], self.occurs[:0]
        part = slice(self.begins[at], self.ends[at])
        return self.places[part], self.occurs[part]


@dataclass(frozen=True)
class Asked:
    """The terms of a question, and what has changed since.

    `held`: rows of (term, document, occurrences, length) of the documents of `fresh`.
    """

    terms: Sequence[int]
    fresh: Whole
    held: Whole


def told(kept: Kept, asked: Asked, corpus: Corpus) -> Told:
    """Each document's score by BM25 (k1 1.2, b 0.75)."""
    fresh = np.sort(asked.fresh)
    at = np.searchsorted(kept.docs, fresh)
    stale = at[kept.docs[np.minimum(at, len(kept.docs) - 1)] == fresh]
    scores = np.zeros(len(kept.docs) + len(fresh))
    mean = _counted(corpus.mean_length)
    for places, tf, length, df in _parts(kept, asked, fresh, stale):
        idf = math.log(1 + (max(corpus.documents, df) - df + 0.5) / (df + 0.5))
        norm = 1.2 * (0.25 + 0.75 * _counted(length) / mean)
        scores[places] += idf * tf * 2.2 / (tf + norm)
    scores[stale] = 0.0
    return Told(np.concatenate([kept.docs, fresh]), scores.astype(np.float32))


def _counted(length: Any) -> Any:
    """What lengths in words count as: see `search_words`."""
    return np.maximum(length, 18 + 0.1 * length)


def _parts(
    kept: Kept, asked: Asked, fresh: Whole, stale: Whole
) -> Iterator[tuple[Any, Floats, Floats, float]]:
    """Of each term the places in all documents, occurrences and lengths there, and how many."""
    gone = np.zeros(len(kept.docs), bool)
    gone[stale] = True
    for term in asked.terms:
        places, occurs = kept.postings(term)
        tf, length = occurs.astype(np.float64), kept.lengths[places]
        df = len(places)
        if len(fresh):
            held = asked.held[asked.held[:, 0] == term]
            df += len(held) - int(np.count_nonzero(gone[places]))
            new = len(kept.docs) + np.searchsorted(fresh, held[:, 1])
            places = np.concatenate([places, new])
            tf, length = np.concatenate([tf, held[:, 2]]), np.concatenate([length, held[:, 3]])
        if df:
            yield places, tf, length, float(df)


class Worded(Shelf[Kept]):
    """Keeps at most `megabytes` of postings, those of the tenants that asked last."""

    def __init__(self, database: Database, megabytes: int) -> None:
        super().__init__(megabytes)
        self._db = database

    @property
    def _most_postings(self) -> int:
        return min(MOST, self._most // POSTING_BYTES)

    async def told(self, tenant: Tenant, text: str, corpus: Corpus) -> Told | None:
        """What the prepared question says of each document; None where what is kept cannot tell."""
        if not self._worth_it(tenant, corpus):
            return None
        name = (tenant.id, TABLE)
        kept = self._of(name)
        if kept is None:
            return None
        row = await tenant.row("words_asked", text, kept.since, kept.source, kept.most_fresh + 1)
        if row is None or not self._stands(name, kept, row):
            return None
        held = np.array(row["held"], np.int64).reshape(-1, 4)
        asked = Asked(row["terms"], np.array(row["fresh"], np.int64), held)
        return told(kept, asked, corpus)

    def _worth_it(self, tenant: Tenant, corpus: Corpus) -> bool:
        # No memory has more postings than words; a good half of its words have one.
        least = corpus.documents * corpus.mean_length / 2
        fits = corpus.documents >= LEAST and least <= self._most_postings
        return fits and self._db.is_asked_a_lot(tenant.id)

    def _stands(self, name: Name, kept: Kept, row: asyncpg.Record) -> bool:
        """Whether the table is the one that was read, and little has changed since."""
        if not row["same"]:
            self._drop(name)
            return False
        fresh = len(row["fresh"])
        if fresh > kept.most_fresh // 2 or time.monotonic() - kept.read_at > OLD_SECONDS:
            self._want(name)
        return fresh <= kept.most_fresh

    async def _read(self, name: Name) -> Kept | None:
        most, now = self._most_postings, time.monotonic()
        async with self._db.reading(name[0]) as tenant:
            row = await tenant.row("postings_all", most + 1)
        if row is None or row["postings"] is None:
            return None
        if len(row["postings"]) > most * _POSTING.itemsize:
            return None
        return await asyncio.to_thread(_decoded, row, now)


def _decoded(row: asyncpg.Record, now: float) -> Kept:
    postings = np.frombuffer(row["postings"], _POSTING)
    # A part at a time, for there may be millions, and what is made of them is a third as large.
    parts = [postings[at : at + PART] for at in range(0, len(postings), PART)]
    docs = np.unique(np.concatenate([np.unique(_numbers(part["doc"])) for part in parts]))
    lengths, places = np.zeros(len(docs)), np.empty(len(postings), np.int32)
    for number, part in enumerate(parts):
        held = np.searchsorted(docs, _numbers(part["doc"]))
        places[number * PART :][: len(part)] = held
        lengths[held] = part["len"]
    terms = _numbers(np.frombuffer(row["terms"], ">i8"))
    counts = _numbers(np.frombuffer(row["counts"], ">i4"))
    ends, order = np.cumsum(counts), np.argsort(terms)
    return Kept(
        row["source"],
        row["since"],
        docs,
        lengths,
        terms[order],
        (ends - counts)[order],
        ends[order],
        places,
        postings["tf"].astype(np.int16),
        now,
    )


def _numbers(sent: NDArray[Any]) -> Whole:
    return sent.astype(np.int64)
