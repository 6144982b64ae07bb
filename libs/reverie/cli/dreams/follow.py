"""Requests a dream and shows its progress until it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from reverie.cli.app.common import err
from reverie.cli.memory.export_import import open_http_session, raise_for_problem

if TYPE_CHECKING:
    import aiohttp

    from reverie.runtime.settings.settings import Settings

POLL_INTERVAL = 0.3
SLOW_QUEUE_SECONDS = 10.0
"""After so long in the queue it is said that no worker has come."""


@dataclass
class DreamOutcome:
    """What became of a request: done, parked (given up), or as it stood when time was over."""

    scope: str
    status: str
    runs: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None


class DreamProgressReporter(Protocol):
    """Shows how far a dream is."""

    def at(self, state: str, done: int, of: int) -> None:
        """`done` of `of` turns."""


class _LineReporter:
    """A line on standard error for each change."""

    def __init__(self, scope: str) -> None:
        self._scope, self._last = scope, ""

    def at(self, state: str, done: int, of: int) -> None:
        line = f"{self._scope}: {state}, {done} of {of} turns" if of else f"{self._scope}: {state}"
        if line != self._last:
            err().print(line, markup=False)
        self._last = line


@contextmanager
def _open_reporter(scope: str) -> Iterator[DreamProgressReporter]:
    console = err()
    if not console.is_terminal:
        yield _LineReporter(scope)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(scope, total=None)

        class Bar:
            def at(self, state: str, done: int, of: int) -> None:
                progress.update(
                    task, description=f"{scope}: {state}", completed=done, total=of or None
                )

        yield Bar()


async def follow_dream(
    settings: Settings, scope: str | None, session: str | None, timeout_seconds: float
) -> DreamOutcome:
    """Asks for a dream and follows it for so long. Raises what the gateway refused."""
    body = {name: text for name, text in (("scope", scope), ("session", session)) if text}
    async with open_http_session(settings) as http:
        page = await _get_json(http, "/v1/dreams", limit="1")
        last_run_id = page["items"][0]["id"] if page["items"] else ""
        async with http.post("/v1/dream", json=body) as response:
            await raise_for_problem(response)
            accepted = await response.json()
        outcome = DreamOutcome(accepted["scope"], accepted["status"])
        if timeout_seconds:
            with _open_reporter(outcome.scope) as reporter:
                await _poll_until_done(http, outcome, last_run_id, timeout_seconds, reporter)
        return outcome


async def _poll_until_done(
    http: aiohttp.ClientSession,
    outcome: DreamOutcome,
    last_run_id: str,
    timeout_seconds: float,
    reporter: DreamProgressReporter,
) -> None:
    started = monotonic()
    while True:
        page = await _get_json(http, "/v1/dream", scope=outcome.scope)
        entry = next((item for item in page["items"] if item["state"] != "waiting"), None)
        outcome.runs = await _runs_after(http, outcome.scope, last_run_id)
        if entry is None and outcome.runs:
            outcome.status = outcome.runs[-1]["status"]
            return
        if entry is not None and entry["state"] == "parked":
            outcome.status, outcome.error = "parked", entry["error"]
            return
        outcome.status = entry["state"] if entry else "queued"
        if monotonic() - started > timeout_seconds:
            return
        is_slow = outcome.status == "queued" and monotonic() - started > SLOW_QUEUE_SECONDS
        state = "queued, no worker has come yet" if is_slow else outcome.status
        reporter.at(state, (entry or {}).get("done") or 0, (entry or {}).get("waiting") or 0)
        await asyncio.sleep(POLL_INTERVAL)


async def _runs_after(
    http: aiohttp.ClientSession, scope: str, last_run_id: str
) -> list[dict[str, Any]]:
    """The runs over a scope after the run `last_run_id`, in order."""
    page = await _get_json(http, "/v1/dreams", scope=scope, limit="50")
    return [run for run in reversed(page["items"]) if run["id"] > last_run_id]


async def _get_json(http: aiohttp.ClientSession, path: str, **query: str) -> dict[str, Any]:
    async with http.get(path, params=query) as response:
        await raise_for_problem(response)
        return dict(await response.json())
