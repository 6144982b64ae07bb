"""Removes newly known secrets from texts that are already stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reverie.domain.access.principals import Principal
from reverie.store.db.database import Database

MEMORY_TABLE = "memory"
ANSWER_TABLE = "idempotency"
TABLES = (
    MEMORY_TABLE,
    "memory_version",
    "turn",
    "session",
    "edge",
    "summary",
    "summary_narrative",
    "scope_name",
    "git_event",
    "git_file",
    "stale_mark",
    "api_key",
    "outbox",
    "recall_trace",
    "dream_decision",
    "review",
    "engine_group",
    "engine_message",
    "engine_turn",
    "engine_effect",
    "document",
    ANSWER_TABLE,
)
"""The tables that contain texts, in processing order."""

CHANGE_REASON = "a secret of the vault was taken out"
RESTORE_REASON = "a value of the vault was put back"


@dataclass(frozen=True)
class BackfillRun:
    """A pass over a tenant's texts, and its position: a table and a row of it."""

    tenant: int
    tenant_name: str
    started: datetime
    table: str
    position: Any


@dataclass(frozen=True)
class RowTexts:
    """A row's key, its texts by column, and its scopes; `seen` detects changes since the read."""

    place: Any
    texts: dict[str, Any]
    seen: str
    scopes: list[str]


@dataclass(frozen=True)
class RedactedRow:
    """A row's texts as they are to be, with their words and the hash of the content."""

    place: Any
    seen: str
    now: dict[str, Any]
    words: str
    hash: str
    reason: str = CHANGE_REASON


@dataclass(frozen=True)
class RedactionProgress:
    """The progress of a tenant's redaction since a secret was last put."""

    requested_at: datetime
    finished: datetime | None
    passes: int
    examined: int
    redacted: int


class RedactionBackfillStore:
    """Each call is one transaction within one tenant; any of them may be repeated."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def claim(self, lease_seconds: float) -> BackfillRun | None:
        """A tenant's texts to go through, nobody else's for the time of the lease."""
        found = await self._db.fetch_rows("redaction_claim", lease_seconds)
        if not found:
            return None
        row = found[0]
        table = row["part"] or TABLES[0]
        return BackfillRun(row["tenant"], row["tenant_name"], row["begun"], table, row["place"])

    async def page(self, run: BackfillRun, limit: int) -> list[RowTexts]:
        """The rows after the passage's place."""
        async with self._db.tenant_transaction(run.tenant) as connection:
            if run.table != ANSWER_TABLE:
                found = await connection.fetch_rows(
                    "redaction_page", run.table, run.position, limit
                )
                return [RowTexts(**row) for row in found]
            answers = await connection.fetch_rows("redaction_answers", run.position or "", limit)
        return [
            RowTexts(row["key"], {"body": row["body"].decode(errors="replace")}, "", ["*"])
            for row in answers
        ]

    async def put(self, run: BackfillRun, rows: Sequence[RedactedRow]) -> bool:
        """Writes redacted texts; returns whether none of the rows changed since it was read."""
        if run.table == ANSWER_TABLE:
            async with self._db.tenant_transaction(run.tenant) as connection:
                await connection.fetch_rows(
                    "idempotency_forget_answers", [row.place for row in rows]
                )
            return True
        return all([await self._put_row(run, row) for row in rows])

    async def _put_row(self, run: BackfillRun, row: RedactedRow) -> bool:
        async with self._db.tenant_transaction(run.tenant) as connection:
            if run.table == MEMORY_TABLE:
                return bool(
                    await connection.fetch_value(
                        "redaction_put_memory", run.tenant_name, vars(row), row.reason
                    )
                )
            return bool(await connection.fetch_value("redaction_put_row", run.table, vars(row)))

    async def save_progress(
        self, run: BackfillRun, looked: int, scrubbed: int, lease_seconds: float
    ) -> bool:
        """Saves the position of a pass; False if another worker continues it."""
        is_current = await self._db.call(
            "redaction_save_progress",
            run.tenant,
            run.started,
            run.table,
            run.position,
            looked,
            scrubbed,
            timedelta(seconds=lease_seconds),
        )
        return bool(is_current)

    async def finish(self, run: BackfillRun, grace_seconds: float) -> None:
        """Ends a pass; another follows if it began before the grace period was over."""
        await self._db.call(
            "redaction_finish", run.tenant, run.started, timedelta(seconds=grace_seconds)
        )

    async def load_state(self, principal: Principal) -> RedactionProgress | None:
        """Loads the progress; None if the tenant never put a secret."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            row = await connection.fetch_row("redaction_state")
        return RedactionProgress(**row) if row else None
