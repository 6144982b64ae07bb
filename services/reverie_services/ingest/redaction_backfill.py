"""Redacts vault secrets from stored texts, and puts back those that an administrator restored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog

from reverie.domain.core.errors import ReverieError
from reverie.domain.core.memory import hash_content
from reverie.domain.redaction.vault_secrets import SecretMatcher
from reverie.domain.text.index_terms import index_text, memory_index_text
from reverie.runtime.observability.tracing import span
from reverie.store.vault.redaction_backfill import (
    CHANGE_REASON,
    RESTORE_REASON,
    TABLES,
    BackfillRun,
    RedactedRow,
    RowTexts,
)
from reverie_services.ingest.dependencies import RedactionBackfillDependencies

log = structlog.get_logger("reverie.ingest")

PAGE_SIZE = 200
LEASE_SECONDS = 60.0
POLL_INTERVAL = 1.0
_TEXT_FIELDS = frozenset({"summary", "key", "git", "metadata", "tags"})


async def run_redaction_backfill(deps: RedactionBackfillDependencies) -> None:
    """Redacts the texts of one tenant after another until cancelled."""
    while True:
        run: BackfillRun | None = None
        try:
            if run := await deps.redaction_backfill.claim(LEASE_SECONDS):
                await redact_stored_texts(deps, run)
                continue
        except asyncio.CancelledError:
            # A service that stops ends its lease: the next one continues at once.
            if run:
                with suppress(ReverieError):
                    await deps.redaction_backfill.save_progress(run, 0, 0, 0.0)
            raise
        except ReverieError as error:
            log.warning("redaction_backfill_postponed", reason=str(error))
        # The lease expires, and the run resumes at its position.
        except Exception as error:
            log.exception("redaction_backfill_failed", error=type(error).__name__)
        await asyncio.sleep(POLL_INTERVAL)


async def redact_stored_texts(deps: RedactionBackfillDependencies, run: BackfillRun) -> int:
    """Completes the run; returns the number of rows redacted. Safe to interrupt."""
    row_count = 0
    with span("redaction backfill", tenant=run.tenant_name):
        for table in TABLES[TABLES.index(run.table) :]:
            if table != run.table:
                run = replace(run, table=table, position=None)
            redacted = await _redact_table(deps, run)
            if redacted is None:
                return row_count
            row_count += redacted
        await deps.redaction_backfill.finish(run, deps.grace)
    log.info("redaction_backfill_progress", rows=row_count)
    return row_count


async def _redact_table(deps: RedactionBackfillDependencies, run: BackfillRun) -> int | None:
    """Returns the number of rows redacted in the table; None if another process has the run."""
    row_count = 0
    while page := await deps.redaction_backfill.page(run, PAGE_SIZE):
        secrets = (await deps.load_redactor(run.tenant)).secrets
        redacted_rows = await asyncio.to_thread(_redact_rows, secrets, page)
        if redacted_rows and not await deps.redaction_backfill.put(run, redacted_rows):
            continue
        run = replace(run, position=page[-1].place)
        if not await deps.redaction_backfill.save_progress(
            run, len(page), len(redacted_rows), LEASE_SECONDS
        ):
            return None
        row_count += len(redacted_rows)
    return row_count


def _redact_rows(secrets: SecretMatcher, page: Sequence[RowTexts]) -> list[RedactedRow]:
    """The rows of which a text changes, as they are to be."""
    changed: list[RedactedRow] = []
    for row in page:
        restored, restored_count = _change_texts(row.texts, secrets.restore_value, row.scopes)
        redacted, count = _change_texts(restored, secrets.redact_value, row.scopes)
        if redacted == row.texts:
            continue
        content = redacted.get("content") or ""
        fields = {**(redacted.get("state") or {}), **redacted}
        if "tags" in fields:
            words = memory_index_text(
                fields.get("key"), content, fields["tags"], fields.get("metadata") or {}
            )
        else:
            words = index_text(content)
        reason = RESTORE_REASON if restored_count and not count else CHANGE_REASON
        changed.append(
            RedactedRow(row.place, row.seen, redacted, words, hash_content(content), reason)
        )
    return changed


def _change_texts(
    texts: dict[str, Any],
    change: Callable[[Any, Sequence[str]], tuple[Any, int]],
    scopes: Sequence[str],
) -> tuple[dict[str, Any], int]:
    """Changes the columns; of a version's state, what of it is text."""
    redacted, total = {}, 0
    for name, value in texts.items():
        if name == "state":
            text_fields = {
                field: inner_value for field, inner_value in value.items() if field in _TEXT_FIELDS
            }
            inner_value, count = _change_texts(text_fields, change, scopes)
            redacted[name] = value | inner_value
        else:
            redacted[name], count = change(value, scopes)
        total += count
    return redacted, total
