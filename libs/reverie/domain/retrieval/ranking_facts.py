"""Facts of memories that ranking reads, as arrays: one record a memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from reverie.domain.core.kinds import Kind, Tier
from reverie.domain.core.memory import Memory, MemoryStatus

IntArray = NDArray[np.int64]
Numbers = NDArray[np.integer[Any]]
"""Integers of any width."""
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
FactRecords = NDArray[np.void]

KINDS = tuple(Kind)
TIERS = tuple(Tier)
STATUSES = tuple(MemoryStatus)
"""The members by their code in a record."""
ACTIVE, SUPERSEDED, DELETED = map(
    STATUSES.index, (MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED, MemoryStatus.DELETED)
)

_PACKED_COLUMNS = [
    ("doc", ">i8"),
    ("id_high", ">u8"),
    ("id_low", ">u8"),
    ("created", ">i8"),
    ("confirmed", ">i8"),
    ("valid_from", ">i8"),
    ("used", ">i8"),
    ("successor", ">i8"),
    ("hash", ">u8"),
    ("session", ">u8"),
    ("confidence", ">f4"),
    ("boost", ">f4"),
    ("staleness", ">f4"),
    ("rank", ">f4"),
    ("terms", ">i4"),
    ("kind", ">i2"),
    ("tier", ">i2"),
    ("status", ">i2"),
    ("flags", ">i2"),
]
PACKED_FACTS = np.dtype(_PACKED_COLUMNS)
"""The layout in which the SQL function `recall_facts` packs the facts of a memory.

`doc`: the number of the memory. `successor`: the number of the memory that replaced it or that
contradicts it and is later, or -1. `hash`, `session`: 8 bytes of each. `rank`: PageRank. `terms`:
the length in words. Times are microseconds since 2000.
"""
_COLUMNS = [
    (name, "u1" if code == ">i2" else code.replace(">", "="))
    for name, code in _PACKED_COLUMNS
    if name not in ("session", "terms")
]
FACTS = np.dtype(_COLUMNS)
"""What ranking reads of a memory; codes and flags are below 256."""
NO_TIME = np.iinfo(np.int64).min
NO_SUCCESSOR = -1
PINNED, WHOLE, LINKED = 1, 2, 4
"""Flags of a record; `WHOLE`: its vectors and edges were derived."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def decode_facts(packed: FactRecords) -> FactRecords:
    """The facts of records of `PACKED_FACTS`, with rounded figures."""
    records = np.empty(len(packed), FACTS)
    for name, _ in _COLUMNS:
        records[name] = packed[name]
    for name in ("confidence", "boost", "staleness"):
        records[name] = records[name].round(4)
    return records


def encode_moment(moment: datetime | None) -> int:
    """A moment in the form of a record: microseconds since 2000."""
    return NO_TIME if moment is None else (moment - _EPOCH) // _MICROSECOND


def has_flag(records: FactRecords, flag: int) -> BoolArray:
    """Which records have a flag."""
    return (records["flags"] & flag) > 0


def list_ids(records: FactRecords) -> list[UUID]:
    """The ids of the memories."""
    pairs = zip(records["id_high"].tolist(), records["id_low"].tolist(), strict=True)
    return [UUID(int=(high << 64) | low) for high, low in pairs]


def encode_facts(memories: Iterable[tuple[int, int | None, Memory]]) -> FactRecords:
    """Encodes memories of the past: the number, the successor's, and the memory of then.

    What was not recorded is left out: uses and ranks.
    """
    rows = [
        (
            doc,
            memory.id.int >> 64,
            memory.id.int & ((1 << 64) - 1),
            encode_moment(memory.created_at),
            encode_moment(memory.confirmed_at),
            encode_moment(memory.valid_from),
            NO_TIME,
            NO_SUCCESSOR if successor is None else successor,
            int(memory.content_hash[:16], 16),
            memory.confidence,
            0.0,
            memory.staleness,
            0.0,
            KINDS.index(memory.kind),
            TIERS.index(memory.tier),
            STATUSES.index(memory.status),
            PINNED * memory.pinned | WHOLE | LINKED * memory.linked,
        )
        for doc, successor, memory in memories
    ]
    return np.array(rows, FACTS)


@dataclass(frozen=True)
class FactTable:
    """The facts of some memories, and which of them the filter of the question lets through.

    `scopes`: places in `scope_names`.
    """

    records: FactRecords
    passes: BoolArray
    scopes: NDArray[np.int32]
    scope_names: Sequence[str]

    def align(self, docs: IntArray) -> FactTable:
        """The facts of these memories, one a row; what is not there passes no filter."""
        if not len(self.records):
            size = len(docs)
            numbers = np.zeros(size, np.int32)
            return FactTable(np.zeros(size, FACTS), numbers > 0, numbers, [""])
        order = np.argsort(self.records["doc"])
        positions = np.searchsorted(self.records["doc"], docs, sorter=order)
        rows = order[np.minimum(positions, len(order) - 1)]
        is_there = self.records["doc"][rows] == docs
        records = self.records[rows]
        records[~is_there] = np.zeros(1, FACTS)
        passes = self.passes[rows] & is_there
        return FactTable(records, passes, self.scopes[rows], self.scope_names)

    def join(self, more: FactTable) -> FactTable:
        """The facts of these and of more memories."""
        return FactTable(
            np.concatenate([self.records, more.records]),
            np.concatenate([self.passes, more.passes]),
            np.concatenate([self.scopes, more.scopes + np.int32(len(self.scope_names))]),
            [*self.scope_names, *more.scope_names],
        )


def number_scopes(scopes: Iterable[str]) -> tuple[NDArray[np.int32], list[str]]:
    """Gives equal scopes one number: the number of each, and the names in the order of numbers."""
    numbers: dict[str, int] = {}
    numbered = [numbers.setdefault(scope, len(numbers)) for scope in scopes]
    return np.array(numbered, np.int32), list(numbers)
