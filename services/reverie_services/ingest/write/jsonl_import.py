"""Imports a JSON lines file in batches and counts the outcome of each line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import BinaryIO

from reverie.contracts.export_import import ImportResponse, RejectedLine
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import ReverieError
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.runtime.http.calls import unlimited
from reverie.runtime.observability.tracing import inject_headers
from reverie.store.memories.export_import import PAGE_SIZE, ImportOutcome, ImportSession
from reverie_services.ingest.settings import IngestSettings
from reverie_services.ingest.write.jsonl_records import ImportRecord, check_header, parse_record

MAX_REPORTED_REFUSALS = 100
"""Refused lines that are named; all are counted."""
MAX_LINE_BYTES = 16 * 1024 * 1024
"""Bytes of a line."""

NumberedRecord = tuple[int, ImportRecord]


@dataclass(frozen=True)
class ImportContext:
    """The target session, tally, limits and redactor of an import."""

    session: ImportSession
    tally: ImportTally
    settings: IngestSettings
    load_redactor: RedactorLoader
    charge_quota: Callable[[int], Awaitable[None]] = unlimited


@dataclass
class ImportTally:
    """The outcomes of the lines so far."""

    result: ImportResponse
    replaced_ids: dict[str, str] = field(default_factory=dict)
    skipped_ids: set[str] = field(default_factory=set)

    def add_refusal(self, line: int, reason: str, file: str | None = None) -> None:
        """Counts a refused line and names it, unless very many are named already."""
        self.result.rejected += 1
        if len(self.result.rejected_lines) < MAX_REPORTED_REFUSALS:
            self.result.rejected_lines.append(RejectedLine(line=line, reason=reason, file=file))

    def count_outcome(self, outcome: str) -> None:
        """Counts one more of created, updated, skipped or forgotten."""
        setattr(self.result, outcome, getattr(self.result, outcome) + 1)

    def add_outcome(self, line: int, row: ImportRecord, outcome: ImportOutcome) -> None:
        """Counts what became of a record, and keeps the id that its memory got instead."""
        if outcome.outcome == "refused":
            self.add_refusal(line, outcome.reason)
        else:
            self.count_outcome(outcome.outcome)
        if row.kind == "memory":
            old_id = str(row.fields["id"])
            if outcome.id is None:
                self.skipped_ids.add(old_id)
            elif str(outcome.id) != old_id:
                self.replaced_ids[old_id] = str(outcome.id)

    def remap_ids(self, row: ImportRecord) -> ImportRecord | None:
        """Returns the record with the new ids of its memories; None if one was not imported."""
        fields = dict(row.fields)
        for name in ("src", "dst", "memory", "node"):
            old_id = fields.get(name)
            if old_id in self.skipped_ids:
                return None
            if old_id in self.replaced_ids:
                if name in {"memory", "node"}:
                    return None
                fields[name] = self.replaced_ids[old_id]
        if row.kind == "edge" and fields["src"] == fields["dst"]:
            return None
        return ImportRecord(row.kind, fields)


async def import_lines(file: BinaryIO, principal: Principal, context: ImportContext) -> None:
    """Imports the whole file. Raises `MalformedInput` if the header is unknown.

    A secret that is added to the vault during the import applies from the next batch.
    """
    lines = read_numbered_lines(file)
    _, header_line = next(lines, (1, b""))
    check_header(header_line)
    while batch := list(islice(lines, PAGE_SIZE)):
        redactor = await context.load_redactor(principal.tenant)
        rows: list[NumberedRecord] = []
        for number, text in batch:
            if text.strip():
                try:
                    row = parse_record(text, principal, redactor, context.settings)
                    rows.append((number, row))
                except ReverieError as error:
                    context.tally.add_refusal(number, str(error))
        for _, group in groupby(rows, key=lambda numbered_row: numbered_row[1].kind):
            await _write_records(list(group), context)
    await context.session.remap_successors(context.tally.replaced_ids)


def read_numbered_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers from 1; one that is too long is cut, and so is no JSON."""
    number = 0
    while text := file.readline(MAX_LINE_BYTES):
        number += 1
        yield number, text
        while not text.endswith(b"\n") and (text := file.readline(MAX_LINE_BYTES)):
            pass


async def _write_records(numbered_records: list[NumberedRecord], context: ImportContext) -> None:
    tally = context.tally
    remapped = [(number, tally.remap_ids(row)) for number, row in numbered_records]
    rows = [(number, row) for number, row in remapped if row is not None]
    for _ in range(len(remapped) - len(rows)):
        tally.count_outcome("skipped")
    if not rows:
        return
    kind = rows[0][1].kind
    if kind == "memory":
        await context.charge_quota(len(rows))
    outcomes = await context.session.write_batch(
        kind, [row.fields for _, row in rows], inject_headers()
    )
    for (number, row), outcome in zip(rows, outcomes, strict=True):
        tally.add_outcome(number, row, outcome)
