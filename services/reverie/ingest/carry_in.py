"""A file of lines, taken in: each judged by itself, what passes written in batches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import BinaryIO
from uuid import UUID

from reverie.contracts.carry import Imported, Refused
from reverie.domain.access import Principal
from reverie.domain.errors import ReverieError
from reverie.domain.known_secrets import Known, knowing
from reverie.ingest.carry_lines import Row, judge, read_header
from reverie.ingest.settings import IngestSettings
from reverie.runtime.calls import free
from reverie.runtime.telemetry import inject_headers
from reverie.store.carry import PAGE, Landed, Landing

MAX_REFUSED = 100
"""Refused lines that are named; all are counted."""
MAX_LINE = 16 * 1024 * 1024
"""Bytes of a line."""

Numbered = tuple[int, Row]


@dataclass(frozen=True)
class Way:
    """Where the records of a file land, what is counted of them, and by what they are judged."""

    landing: Landing
    tally: Tally
    settings: IngestSettings
    known_of: Callable[[int], Awaitable[Known]]
    spend: Callable[[int], Awaitable[None]] = free


@dataclass
class Tally:
    """What became of the lines so far."""

    answer: Imported
    became: dict[str, str] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)

    def refuse(self, line: int, reason: str, file: str | None = None) -> None:
        """Counts a refused line and names it, unless very many are named already."""
        self.answer.refused += 1
        if len(self.answer.refused_lines) < MAX_REFUSED:
            self.answer.refused_lines.append(Refused(line=line, reason=reason, file=file))

    def count(self, outcome: str) -> None:
        """Counts one more of created, updated, skipped or forgotten."""
        setattr(self.answer, outcome, getattr(self.answer, outcome) + 1)

    def add(self, line: int, row: Row, landed: Landed) -> None:
        """Counts what became of a record, and keeps the id that its memory got instead."""
        if landed.outcome == "refused":
            self.refuse(line, landed.reason)
        else:
            self.count(landed.outcome)
        if row.kind == "memory":
            self._became(str(row.fields["id"]), landed.id)

    def _became(self, named: str, found: UUID | None) -> None:
        if found is None:
            self.left.add(named)
        elif str(found) != named:
            self.became[named] = str(found)

    def placed(self, row: Row) -> Row | None:
        """The record with the ids that its memories got; None where one of them stayed out."""
        fields = dict(row.fields)
        for name in ("src", "dst", "memory", "node"):
            given = fields.get(name)
            if given in self.left:
                return None
            if given in self.became:
                if name in {"memory", "node"}:
                    return None
                fields[name] = self.became[given]
        if row.kind == "edge" and fields["src"] == fields["dst"]:
            return None
        return Row(row.kind, fields)


async def take_lines(file: BinaryIO, who: Principal, way: Way) -> None:
    """Reads the file to its end. Raises `Malformed` on a header that is not understood.

    A secret that enters the vault meanwhile is known from the next batch on.
    """
    lines = numbered(file)
    _, first = next(lines, (1, b""))
    read_header(first)
    while batch := list(islice(lines, PAGE)):
        with knowing(await way.known_of(who.tenant), who.may_read):
            judged = [(n, _judged(n, text, who, way.settings, way.tally)) for n, text in batch]
            rows = [(number, row) for number, row in judged if row is not None]
            for _, same in groupby(rows, key=lambda one: one[1].kind):
                await _land(list(same), way)
    await way.landing.succeed(way.tally.became)


def numbered(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers from 1; one that is too long is cut, and so is no JSON."""
    number = 0
    while text := file.readline(MAX_LINE):
        number += 1
        yield number, text
        while not text.endswith(b"\n") and (text := file.readline(MAX_LINE)):
            pass


def _judged(
    number: int, text: bytes, who: Principal, settings: IngestSettings, tally: Tally
) -> Row | None:
    if not text.strip():
        return None
    try:
        return judge(text, who, settings)
    except ReverieError as error:
        tally.refuse(number, str(error))
        return None


async def _land(waiting: list[Numbered], way: Way) -> None:
    tally = way.tally
    placed = [(number, tally.placed(row)) for number, row in waiting]
    rows = [(number, row) for number, row in placed if row is not None]
    for _ in range(len(placed) - len(rows)):
        tally.count("skipped")
    if not rows:
        return
    kind = rows[0][1].kind
    if kind == "memory":
        await way.spend(len(rows))
    landed = await way.landing.land(kind, [row.fields for _, row in rows], inject_headers())
    for (number, row), one in zip(rows, landed, strict=True):
        tally.add(number, row, one)
