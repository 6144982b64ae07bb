"""The summaries of scopes: what each rests on, its versions, and what of it stands now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.kinds import Kind
from reverie.domain.memory import Memory
from reverie.domain.summary import Told, render, without
from reverie.store import rows
from reverie.store.database import Database
from reverie.store.dreams import Lease

OVERLAP = timedelta(minutes=5)
"""Changes are looked for so long before the last look: a transaction ends later than it began."""


@dataclass(frozen=True)
class Standing:
    """What the newest version rests on: versions by memory. `seen`: None where all is to be looked
    at; `now`: the moment of reading; `complete`: nothing was cut off."""

    now: datetime
    seen: datetime | None
    complete: bool
    rests_on: Mapping[UUID, int]


@dataclass(frozen=True)
class Rest:
    """A memory that a summary rests on, as the version that it was; whether it stands as told."""

    memory: UUID
    version: int
    stands: bool


@dataclass(frozen=True)
class Summary:
    """The condensed present state of a scope: a version of it, less what was forgotten since. Of
    the newest, less all that stands no more."""

    scope: str
    version: int
    content: str
    tokens: int
    made: datetime
    run: UUID | None
    rests_on: tuple[Rest, ...]


class Summaries:
    """One summary for each scope, kept by dreams."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def standing(self, lease: Lease) -> Standing:
        """What the scope's summary rests on."""
        async with self._db.tenant(lease.tenant) as tenant:
            [row] = await tenant.rows("summary_state", lease.scope)
        rests_on = dict(zip(row["memories"], row["versions"], strict=True))
        return Standing(row["now"], row["seen"], row["complete"], rests_on)

    async def known(self, lease: Lease, limit: int) -> list[Memory]:
        """Active memories of the scope, the weightiest first."""
        async with self._db.tenant(lease.tenant) as tenant:
            found = await tenant.rows("summary_known", lease.scope, limit)
        return [rows.memory(row) for row in found]

    async def changed(
        self, lease: Lease, run: UUID, before: Standing, seen: datetime, limit: int
    ) -> list[Memory]:
        """What a summary rests on, as far as it stands, with the last `limit` of the scope that
        changed since, and what a run came upon."""
        since, told = seen - OVERLAP, list(before.rests_on)
        async with self._db.tenant(lease.tenant) as tenant:
            found = await tenant.rows("summary_changed", lease.scope, told, since, run, limit)
        return [rows.memory(row) for row in found]

    async def put(
        self,
        lease: Lease,
        run: UUID,
        content: str,
        tokens: int,
        told: Told[Memory],
        seen: datetime,
    ) -> bool:
        """Puts the summary of the scope; False where the lease was lost."""
        rests_on = {
            "run": str(run),
            "seen": seen.isoformat(),
            "complete": told.complete,
            "memories": [str(one.id) for one in told.rests_on],
            "versions": [one.version for one in told.rests_on],
        }
        return bool(
            await self._db.call(
                "dream_summarise", lease.tenant, lease.scope, lease.epoch, content, tokens, rests_on
            )
        )

    async def page(
        self, who: Principal, scope: str | None, after: str | None, limit: int
    ) -> list[Summary]:
        """The newest summaries of readable scopes, by scope above `after`."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("summaries_page", list(who.reads), scope, after, limit)
            scopes = [row["scope"] for row in found]
            gone = await tenant.rows("summaries_outlived", scopes)
            lines = await tenant.rows("summary_rests", scopes, None)
        told = dict(standing(found, gone))
        return [
            Summary(
                row["scope"],
                row["version"],
                told.get(row["scope"], ""),
                row["tokens"],
                row["updated"],
                None,
                _rests([one for one in lines if one["scope"] == row["scope"]]),
            )
            for row in found
        ]

    async def history(
        self, who: Principal, scope: str, below: int | None, limit: int
    ) -> list[Summary]:
        """The versions of a readable scope's summary, newest first below `below`."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("summary_versions", list(who.reads), scope, below, limit)
            versions = [row["version"] for row in found]
            lines = await tenant.rows("summary_rests", [scope], versions) if versions else []
        return [
            _version(scope, row, [one for one in lines if one["version"] == row["version"]])
            for row in found
        ]


def standing(summaries: Sequence[Any], gone: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """Summaries by scope, less the lines of what stands no more; empty ones are left out."""
    told = [
        (
            row["scope"],
            without(row["content"], [r["content"] for r in gone if r["scope"] == row["scope"]]),
        )
        for row in summaries
    ]
    return tuple((scope, text) for scope, text in told if text)


def _version(scope: str, row: Any, lines: Sequence[Any]) -> Summary:
    kept = [one for one in lines if one["status"] != "deleted"]
    text = render((Kind(one["kind"]), one["content"]) for one in kept)
    return Summary(
        scope, row["version"], text, row["tokens"], row["made"], row["run"], _rests(kept)
    )


def _rests(lines: Sequence[Any]) -> tuple[Rest, ...]:
    return tuple(Rest(one["memory"], one["told_version"], one["stands"]) for one in lines)
