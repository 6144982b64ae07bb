"""Asking for a dream and following it: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from reverie.cli.carry import _check, _gateway
from reverie.cli.common import err

if TYPE_CHECKING:
    import aiohttp

    from reverie.runtime.settings import Settings

LOOK_SECONDS = 0.3
SLOW_SECONDS = 10.0
"""After so long in the queue it is said that no worker has come."""


@dataclass
class Followed:
    """What became of a request: done, parked (given up), or as it stood when time was over."""

    scope: str
    status: str
    runs: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None


class Teller(Protocol):
    """Shows how far a dream is."""

    def at(self, state: str, done: int, of: int) -> None:
        """`done` of `of` turns."""


class _Lines:
    """A line on standard error for each change."""

    def __init__(self, scope: str) -> None:
        self._scope, self._last = scope, ""

    def at(self, state: str, done: int, of: int) -> None:
        line = f"{self._scope}: {state}, {done} of {of} turns" if of else f"{self._scope}: {state}"
        if line != self._last:
            err().print(line, markup=False)
        self._last = line


@contextmanager
def _teller(scope: str) -> Iterator[Teller]:
    console = err()
    if not console.is_terminal:
        yield _Lines(scope)
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


async def follow(
    settings: Settings, scope: str | None, session: str | None, seconds: float
) -> Followed:
    """Asks for a dream and follows it for so long. Raises what the gateway refused."""
    asked = {name: text for name, text in (("scope", scope), ("session", session)) if text}
    async with _gateway(settings) as http:
        before = await _get(http, "/v1/dreams", limit="1")
        last = before["items"][0]["id"] if before["items"] else ""
        async with http.post("/v1/dream", json=asked) as answer:
            await _check(answer)
            made = await answer.json()
        done = Followed(made["scope"], made["status"])
        if seconds:
            with _teller(done.scope) as teller:
                await _followed(http, done, last, seconds, teller)
        return done


async def _followed(
    http: aiohttp.ClientSession, done: Followed, last: str, seconds: float, teller: Teller
) -> None:
    begun = monotonic()
    while True:
        page = await _get(http, "/v1/dream", scope=done.scope)
        now = next((one for one in page["items"] if one["state"] != "waiting"), None)
        done.runs = await _since(http, done.scope, last)
        if now is None and done.runs:
            done.status = done.runs[-1]["status"]
            return
        if now is not None and now["state"] == "parked":
            done.status, done.error = "parked", now["error"]
            return
        done.status = now["state"] if now else "queued"
        if monotonic() - begun > seconds:
            return
        slow = done.status == "queued" and monotonic() - begun > SLOW_SECONDS
        state = "queued, no worker has come yet" if slow else done.status
        teller.at(state, (now or {}).get("done") or 0, (now or {}).get("waiting") or 0)
        await asyncio.sleep(LOOK_SECONDS)


async def _since(http: aiohttp.ClientSession, scope: str, last: str) -> list[dict[str, Any]]:
    """The runs over a scope after the run `last`, in order."""
    page = await _get(http, "/v1/dreams", scope=scope, limit="50")
    return [one for one in reversed(page["items"]) if one["id"] > last]


async def _get(http: aiohttp.ClientSession, path: str, **query: str) -> dict[str, Any]:
    async with http.get(path, params=query) as answer:
        await _check(answer)
        return dict(await answer.json())
