"""Requests a dream and shows its progress until it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from reverie.cli.app.gateway_client import open_client
from reverie.cli.app.output import err

if TYPE_CHECKING:
    from reverie.client import AsyncReverie
    from reverie.runtime.settings.settings import Settings

ReportProgress = Callable[[str, int, int], None]
"""Shows the state of a dream, and how many of its turns are digested."""

POLL_INTERVAL = 0.3
SLOW_QUEUE_SECONDS = 10.0
"""After this time in the queue, the display reports that no worker has started the dream."""


@dataclass
class DreamOutcome:
    """The status of a requested dream: done, parked (failed), or the last before the timeout.

    `earlier`: the last dream that digested something, if the requested one found nothing new.
    """

    scope: str
    status: str
    runs: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    earlier: dict[str, Any] | None = None


@contextmanager
def _show_progress(scope: str) -> Iterator[ReportProgress]:
    """Shows a bar on a terminal, and elsewhere a line for each change, on standard error."""
    console = err()
    if console.is_terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task(scope, total=None)
            yield lambda state, done, total: progress.update(
                task, description=f"{scope}: {state}", completed=done, total=total or None
            )
        return
    last = ""

    def print_change(state: str, done: int, total: int) -> None:
        nonlocal last
        turns = f", {done} of {total} turns" if total else ""
        line = f"{scope}: {state}{turns}"
        if line != last:
            console.print(line, markup=False)
        last = line

    yield print_change


async def follow_dream(
    settings: Settings, scope: str | None, session: str | None, timeout_seconds: float
) -> DreamOutcome:
    """Requests a dream, and follows it until the timeout. Raises `ApiError`."""
    body = {name: text for name, text in (("scope", scope), ("session", session)) if text}
    async with open_client(settings, "reverie-dream") as client:
        page = await _get_json(client, "/v1/dreams", limit=1)
        last_run_id = page["items"][0]["id"] if page["items"] else ""
        accepted = (await client.call("POST", "/v1/dream", body=body)).body
        outcome = DreamOutcome(accepted["scope"], accepted["status"])
        if timeout_seconds:
            with _show_progress(outcome.scope) as report:
                await _poll_until_done(client, outcome, last_run_id, timeout_seconds, report)
        return outcome


async def _poll_until_done(
    client: AsyncReverie,
    outcome: DreamOutcome,
    last_run_id: str,
    timeout_seconds: float,
    report: ReportProgress,
) -> None:
    started = monotonic()
    while True:
        page = await _get_json(client, "/v1/dream", scope=outcome.scope)
        entry = next((item for item in page["items"] if item["state"] != "waiting"), None)
        recent = await _get_json(client, "/v1/dreams", scope=outcome.scope, limit=50)
        outcome.runs = [run for run in reversed(recent["items"]) if run["id"] > last_run_id]
        if entry is None and outcome.runs:
            outcome.status = outcome.runs[-1]["status"]
            if not any(run["turns"] for run in outcome.runs):
                outcome.earlier = next((run for run in recent["items"] if run["turns"]), None)
            return
        if entry is not None and entry["state"] == "parked":
            outcome.status, outcome.error = "parked", entry["error"]
            return
        outcome.status = entry["state"] if entry else "queued"
        if monotonic() - started > timeout_seconds:
            return
        is_slow = outcome.status == "queued" and monotonic() - started > SLOW_QUEUE_SECONDS
        state = "queued, no worker took it yet" if is_slow else outcome.status
        report(state, (entry or {}).get("digested") or 0, (entry or {}).get("waiting") or 0)
        await asyncio.sleep(POLL_INTERVAL)


async def _get_json(client: AsyncReverie, path: str, **query: str | int) -> dict[str, Any]:
    return dict((await client.call("GET", path, query=query)).body)
