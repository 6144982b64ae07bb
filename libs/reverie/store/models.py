"""Which embedding model a tenant's meaning goes by, and filling another beside it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import LiteralString

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector

from reverie.store.counts import Counts
from reverie.store.database import FIRST_VECTORS, Database, Tenant
from reverie.store.migrate import SCHEMA

FIRST_MODEL = "bge-small-en-v1.5"
"""The model of a tenant that was never moved to another."""
TRUSTED_SECONDS = 5.0
MOST_USED = 3
"""Models that are loaded before anybody asks by them: one may take 400 MB."""
MOST_KNOWN = 1_000
"""Tenants whose model a process knows, those looked up last: 12 KB each, for the probe."""

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Pointer:
    """A model and the length of its vectors; `probe`: what it made of the probe text."""

    name: str = FIRST_MODEL
    dims: int = 384
    probe: tuple[float, ...] = ()

    @property
    def vectors(self) -> str:
        """The table of its vectors."""
        return table_of(self.name)


@dataclass(frozen=True)
class Due:
    """A chunk without a vector: its number and its text."""

    no: int
    text: str


def table_of(name: str) -> str:
    """The name of a model's vector table: two models never share one."""
    short = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40]
    if name == FIRST_MODEL:
        return FIRST_VECTORS
    return f"vec_{short}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


class Moving:
    """Moves tenants to other models, as the schema's owner."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def make_vectors(self, name: str, dims: int) -> None:
        """Makes a model's vector table where it is missing."""
        if name != FIRST_MODEL:
            await self._run("call make_vectors(%s, %s)", table_of(name), dims)

    async def begin(self, tenant: int, name: str, dims: int, probe: Sequence[float]) -> Pointer:
        """Notes a model that is to be filled; what was noted of it first stands."""
        await self._run(
            "update tenant set models = jsonb_build_object(%s::text, %s::jsonb) || models"
            " where id = %s",
            *(name, json.dumps(_noting(name, dims, probe)), tenant),
            tenant=tenant,
        )
        return Pointer(name, dims)

    async def switch(self, tenant: int, name: str) -> None:
        """From now on the tenant's meaning goes by that model.

        Waits for what is being written with the other one.
        """
        await self._run(
            "with waited as materialized ("
            " select pg_advisory_xact_lock(hashtext('reverie.model'), %s))"
            " update tenant set model = %s from waited where id = %s",
            *(tenant, name, tenant),
            tenant=tenant,
        )

    async def _run(self, statement: LiteralString, *args: object, tenant: int = 0) -> None:
        await asyncio.to_thread(self._blocking, statement, args, tenant)

    def _blocking(self, statement: LiteralString, args: Sequence[object], tenant: int) -> None:
        with psycopg.connect(self._url, options=f"-csearch_path={SCHEMA},public") as connection:
            connection.execute("select set_config('reverie.tenant', %s, true)", (str(tenant),))
            connection.execute(statement, args)


def _noting(name: str, dims: int, probe: Sequence[float]) -> dict[str, object]:
    return {"vectors": table_of(name), "dims": dims, "probe": list(probe)}


async def pointed(t: Tenant) -> Pointer:
    """The model that the tenant's meaning goes by; its queries go to that model's table."""
    row = await t.row("model_active")
    found = Pointer(row["name"], row["dims"]) if row else Pointer()
    t.vectors = found.vectors
    return found


async def probed(t: Tenant) -> Pointer:
    """`pointed`, with what the model made of the probe text."""
    found = await pointed(t)
    return replace(found, probe=tuple(await t.value("model_probe") or ()))


class Models:
    """Which model each tenant goes by, and what another lacks yet."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._known: OrderedDict[int, tuple[float, Pointer]] = OrderedDict()
        self._counts = Counts()

    async def of(self, tenant: int) -> Pointer:
        """The model of a tenant, as it stood at most `TRUSTED_SECONDS` ago."""
        at, found = self._known.get(tenant, (-TRUSTED_SECONDS, Pointer()))
        if monotonic() - at >= TRUSTED_SECONDS:
            async with self._db.reading(tenant) as t:
                found = await probed(t)
            self._keep(tenant, found)
        return found

    async def want_used(self, want: Callable[[str], None]) -> None:
        """Tells once of the models that most tenants were moved to."""
        for row in await self._db.rows("models_in_use", MOST_USED):
            want(row["model"])

    def lately(self, tenant: int) -> Pointer:
        """What `of` said of a tenant last; the first model where it was not asked."""
        return self._known.get(tenant, (0.0, Pointer()))[1]

    async def was_moved(self, tenant: int) -> bool:
        """Whether it was ever said which model the tenant's meaning is to go by."""
        async with self._db.tenant(tenant) as t:
            return await t.row("model_active") is not None

    async def begin(self, tenant: int, name: str, dims: int, probe: Sequence[float]) -> Pointer:
        """As `Moving.begin`; the vector table must stand."""
        async with self._db.tenant(tenant) as t:
            await t.value("model_begin", name, _noting(name, dims, probe))
        return Pointer(name, dims)

    async def switch(self, tenant: int, name: str) -> None:
        """As `Moving.switch`, but for a tenant that was moved meanwhile: there that stands."""
        async with self._db.tenant(tenant) as t:
            await t.value("model_waits")
            await t.value("model_switch", name)
        self._known.pop(tenant, None)

    async def begun(self, tenant: int, limit: int, chars: int) -> list[str]:
        """How the memories that came last begin."""
        async with self._db.reading(tenant) as t:
            return [row["text"] for row in await t.rows("model_texts", limit, chars)]

    def _keep(self, tenant: int, found: Pointer) -> None:
        self._known.pop(tenant, None)
        self._known[tenant] = (monotonic(), found)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    async def noted(self, tenant: int) -> list[tuple[Pointer, bool]]:
        """The models of a tenant, the one that its meaning goes by first and marked."""
        async with self._db.reading(tenant) as t:
            active = await pointed(t)
            found = await t.rows("model_noted")
        others = [Pointer(row["name"], row["dims"]) for row in found if not row["active"]]
        return [(active, True), *((one, False) for one in others if one.name != active.name)]

    async def walk(self, tenant: int, of: Pointer, limit: int) -> int:
        """Puts some vectors, where there are many, into the index that is walked; how many."""
        async with self._db.reading(tenant) as t:
            t.vectors = of.vectors
            if not await self._counts.walks(t):
                return 0
        async with self._db.tenant(tenant, flushed=False) as t:
            t.vectors = of.vectors
            return len(await t.rows("vectors_walk", limit))

    async def due(self, tenant: int, of: Pointer, after: int, limit: int) -> list[Due]:
        """Chunks that the model has no vectors of, by their number."""
        async with self._db.tenant(tenant) as t:
            t.vectors = of.vectors
            found = await t.rows("reembed_due", after, limit)
        return [Due(r["no"], r["content"][r["start"] : r["stop"]]) for r in found]

    async def put(self, tenant: int, of: Pointer, vectors: Sequence[tuple[int, Vector]]) -> None:
        """Keeps vectors by the number of their chunk."""
        async with self._db.tenant(tenant) as t:
            t.vectors = of.vectors
            await t.many("reembed_put", [(no, HalfVector(vector)) for no, vector in vectors])

    async def counts(self, tenant: int, of: Pointer) -> tuple[int, int]:
        """How many chunks have a vector, of how many."""
        async with self._db.tenant(tenant) as t:
            t.vectors = of.vectors
            [row] = await t.rows("reembed_count")
        return row["done"], row["chunks"]
