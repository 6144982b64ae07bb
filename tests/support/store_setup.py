"""A migrated database with tenants, and helpers that write into it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray

from reverie.domain.access.principals import KeyRole, Principal
from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import KIND_POLICIES, Kind
from reverie.domain.core.memory import NewMemory, WriteResult, hash_content
from reverie.domain.text.index_terms import index_text
from reverie.store.db.connections import SERVER_SETTINGS
from reverie.store.db.database import Database, open_database
from reverie.store.memories.enrichment import (
    DerivedData,
    EnrichableMemory,
    EnrichmentStore,
    MemoryMentions,
)
from reverie.store.memories.memories import MemoryStore
from reverie.testing import servers
from tests.support.tables import asked

PATH = "-csearch_path=reverie,public"


@dataclass(frozen=True)
class Store:
    """A pool under the services' role, and one principal in each of two tenants."""

    db: Database
    memories: MemoryStore
    me: Principal
    other: Principal
    admin_url: str
    service_url: str


def add_tenants(admin_url: str, *names: str) -> list[int]:
    """Makes tenants; answers their numbers."""
    inserted = "insert into tenant (name) values (%s) returning id"
    return [admin_rows(admin_url, inserted, name)[0][0] for name in names]


def principal(tenant: int, name: str, **fields: Any) -> Principal:
    """An administrator of a tenant."""
    return replace(Principal(tenant, name, "key", KeyRole.ADMIN, ("*",), ("*",)), **fields)


@asynccontextmanager
async def open_store(database: servers.DatabaseUrls, size: int = 12) -> AsyncIterator[Store]:
    """The store over a fresh database with the tenants `one` and `two`."""
    one, two = add_tenants(database.admin_url, "one", "two")
    async with open_database(database.service_url, size=size) as db:
        yield Store(
            db,
            MemoryStore(db),
            principal(one, "one"),
            principal(two, "two"),
            database.admin_url,
            database.service_url,
        )


@asynccontextmanager
async def open_store_apart(shared: servers.DatabaseUrls, size: int = 12) -> AsyncIterator[Store]:
    """The same over a database that others have written into: they are other tenants by now."""
    renamed = "update tenant set name = name || '-' || id where name in ('one', 'two')"
    admin_rows(shared.admin_url, renamed)
    async with open_store(shared, size) as store:
        yield store


def new(content: str, **fields: Any) -> NewMemory:
    """A memory about to be written, as the door prepares it."""
    kind = fields.pop("kind", Kind.CONTEXT)
    made = NewMemory(
        id=new_id(),
        scope="global",
        kind=kind,
        content=content,
        content_hash=hash_content(content),
        words=index_text(content),
        tier=KIND_POLICIES[kind].tier,
    )
    return replace(made, **fields)


async def write(store: Store, *items: NewMemory, who: Principal | None = None) -> list[UUID]:
    """The ids of memories that must be accepted."""
    found = await store.memories.remember(who or store.me, items, {})
    assert all(isinstance(one, WriteResult) for one in found), found
    return [one.id for one in found if isinstance(one, WriteResult)]


def docs_of(store: Store, *memories: UUID) -> list[int]:
    """The numbers of memories."""
    found = dict(admin_rows(store.admin_url, "select id, doc from memory"))
    return [found[memory] for memory in memories]


def ids_of(store: Store, docs: NDArray[np.int64]) -> list[UUID]:
    """The ids of memories, by their numbers."""
    found = dict(admin_rows(store.admin_url, "select doc, id from memory"))
    return [found[doc] for doc in docs.tolist()]


async def files_of(
    enrichment: EnrichmentStore, tenant: int, raw: EnrichableMemory, *paths: str
) -> dict[str, UUID]:
    """The nodes of files that a memory touches, by their paths."""
    [nodes] = await enrichment.ensure_nodes(tenant, [MemoryMentions(raw, paths, ())])
    return dict(nodes.files)


async def derived(
    enrichment: EnrichmentStore, tenant: int, one: DerivedData, relatives: int = 0
) -> list[str]:
    """The subjects of what is told once that was derived from a memory of the tenant `one`."""
    [events] = await enrichment.write_derived((tenant, "one"), [one], relatives)
    return [event.subject for event in events]


@asynccontextmanager
async def app_connection(
    service_url: str, tenant: int | str | None = None
) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A connection as the services have it; `tenant` is what its session says, None: nothing."""
    connection = await asyncpg.connect(service_url, server_settings=SERVER_SETTINGS)
    try:
        if tenant is not None:
            await connection.execute(f"set reverie.tenant = '{tenant}'")
        yield connection
    finally:
        await connection.close()


def admin_rows(admin_url: str, sql: str, *args: object) -> list[tuple[Any, ...]]:
    """What a superuser sees, or does."""
    return asked(admin_url, sql.encode(), args)
