"""Checks a JSON lines file, imports it in batches, and counts the outcome of each line.

Lines are parsed in threads, so that other requests are answered meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import BinaryIO

from reverie.contracts.events import BULK_HEADERS
from reverie.contracts.export_import import ImportResponse, RejectedLine
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import ReverieError
from reverie.domain.redaction.redactor import Redactor, RedactorLoader
from reverie.runtime.http.calls import unlimited
from reverie.runtime.observability.tracing import trace_headers
from reverie.runtime.settings.settings import Settings
from reverie.store.memories.export_import import PAGE_SIZE, ImportOutcome, ImportSession
from reverie_services.ingest.write.import_problems import ImportProblems
from reverie_services.ingest.write.jsonl_records import ImportRecord, check_header, parse_record

MAX_REPORTED_REFUSALS = 100
"""Refused lines that are named; all are counted."""
MAX_LINE_BYTES = 16 * 1024 * 1024
"""Bytes of a line."""
MAX_CHECKED_LINE_BYTES = 8 * MAX_LINE_BYTES
"""Bytes of a line with its derived columns."""

NumberedLine = tuple[int, bytes]
NumberedRecord = tuple[int, ImportRecord]


@dataclass(frozen=True)
class ImportContext:
    """Who imports into which session, the tally, limits and redactor of an import."""

    principal: Principal
    session: ImportSession
    tally: ImportTally
    settings: Settings
    load_redactor: RedactorLoader
    charge_quota: Callable[[int], Awaitable[None]] = unlimited


@dataclass
class ImportTally:
    """The outcomes of the lines so far."""

    result: ImportResponse
    replaced_ids: dict[str, str] = field(default_factory=dict)
    skipped_ids: set[str] = field(default_factory=set)

    def add_refusal(self, line: int, reason: str, file: str | None = None) -> None:
        """Counts a line that the store refused, and names it unless very many are named."""
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


async def import_lines(file: BinaryIO, context: ImportContext) -> None:
    """Checks the whole file, and imports it if each of its lines is sound.

    Raises `MalformedInput` if the header is unknown, and `RefusedImport` if a line is not sound. A
    secret that is added to the vault during the import applies from the next batch.
    """
    with tempfile.TemporaryFile() as checked:
        checked_with, memories = await _check_lines(file, checked, context)
        await context.charge_quota(memories)
        lines = read_numbered_lines(checked, MAX_CHECKED_LINE_BYTES)
        async with context.session:
            while batch := await asyncio.to_thread(_read_batch, lines):
                redactor = await context.load_redactor(context.principal.tenant)
                rows = await asyncio.to_thread(_load_records, batch)
                if redactor.secrets.epoch != checked_with.secrets.epoch:
                    rows = await asyncio.to_thread(_redact_again, rows, context, redactor)
                context.tally.result.redactions += sum(row.redactions for _, row in rows)
                for _, group in groupby(rows, key=lambda numbered_row: numbered_row[1].kind):
                    await _write_records(list(group), context)
            await context.session.finish(context.tally.replaced_ids)


async def _check_lines(
    file: BinaryIO, checked: BinaryIO, context: ImportContext
) -> tuple[Redactor, int]:
    """Writes the records of a sound file to `checked`.

    Returns the redactor that was used, and the number of memories.
    """
    redactor = await context.load_redactor(context.principal.tenant)
    lines = read_numbered_lines(file, MAX_LINE_BYTES)
    _, header_line = await asyncio.to_thread(next, lines, (1, b""))
    check_header(header_line)
    problems, memories = ImportProblems(), 0
    while batch := await asyncio.to_thread(_read_batch, lines):
        rows = await asyncio.to_thread(_parse_batch, batch, context, redactor, problems)
        memories += sum(row.kind == "memory" for _, row in rows)
        await asyncio.to_thread(checked.writelines, map(_dump_record, rows))
    problems.raise_if_any()
    checked.seek(0)
    return redactor, memories


def _parse_batch(
    batch: Iterable[NumberedLine],
    context: ImportContext,
    redactor: Redactor,
    problems: ImportProblems,
) -> list[NumberedRecord]:
    """The records of a batch; what is wrong with the other lines goes to `problems`."""
    rows: list[NumberedRecord] = []
    for number, text in batch:
        if text.strip():
            try:
                record = parse_record(text, context.principal, redactor, context.settings)
                rows.append((number, record))
            except ReverieError as error:
                problems.add(number, error)
    return rows


def _dump_record(numbered_record: NumberedRecord) -> bytes:
    number, row = numbered_record
    columns = [number, row.kind, row.fields, row.redactions]
    return json.dumps(columns, ensure_ascii=False).encode() + b"\n"


def _load_records(batch: Iterable[NumberedLine]) -> list[NumberedRecord]:
    loaded = [json.loads(text) for _, text in batch]
    return [(number, ImportRecord(*columns)) for number, *columns in loaded]


def _redact_again(
    rows: list[NumberedRecord], context: ImportContext, redactor: Redactor
) -> list[NumberedRecord]:
    """The same records without the secrets that the vault holds by now."""
    lines = [
        (number, json.dumps({"type": row.kind, **row.fields}).encode()) for number, row in rows
    ]
    problems = ImportProblems()
    again = _parse_batch(lines, context, redactor, problems)
    problems.raise_if_any()
    return [
        (number, replace(row, redactions=row.redactions + before.redactions))
        for (number, row), (_, before) in zip(again, rows, strict=True)
    ]


def read_numbered_lines(file: BinaryIO, max_bytes: int) -> Iterator[NumberedLine]:
    """The lines with their numbers from 1; one that is too long is cut, and so is no JSON."""
    number = 0
    while text := file.readline(max_bytes):
        number += 1
        yield number, text
        while not text.endswith(b"\n") and (text := file.readline(max_bytes)):
            pass


def _read_batch(lines: Iterator[NumberedLine]) -> list[NumberedLine]:
    """The next lines: as many as are stored together, and no more than memory is meant for."""
    batch: list[NumberedLine] = []
    size = 0
    while len(batch) < PAGE_SIZE and size < MAX_LINE_BYTES and (line := next(lines, None)):
        batch.append(line)
        size += len(line[1])
    return batch


async def _write_records(numbered_records: list[NumberedRecord], context: ImportContext) -> None:
    tally = context.tally
    remapped = [(number, tally.remap_ids(row)) for number, row in numbered_records]
    rows = [(number, row) for number, row in remapped if row is not None]
    for _ in range(len(remapped) - len(rows)):
        tally.count_outcome("skipped")
    if not rows:
        return
    kind = rows[0][1].kind
    outcomes = await context.session.write_batch(
        kind, [row.fields for _, row in rows], trace_headers() | BULK_HEADERS
    )
    for (number, row), outcome in zip(rows, outcomes, strict=True):
        tally.add_outcome(number, row, outcome)
