"""Stores documents, values and bytes of programs, by collection and key, in order of writing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reverie.domain.access.principals import Principal
from reverie.store.db.database import Database
from reverie.store.db.idempotency import run_once

SWEPT_AT_ONCE = 10_000
PAGE_BYTES = 8 * 1024 * 1024
"""The most bytes of a page of several documents."""


@dataclass(frozen=True)
class NewDocument:
    """A document to write: a JSON value, or bytes. `expires`: when it is gone; None for never."""

    key: str
    value: Any = None
    data: bytes | None = None
    expires: datetime | None = None


@dataclass(frozen=True)
class StoredDocument:
    """A document. `position` orders those of a scope by when each was written first."""

    key: str
    position: int
    value: Any
    data: bytes | None
    created: datetime
    updated: datetime
    expires: datetime | None


@dataclass(frozen=True)
class DocumentCollection:
    """A collection, the number of its documents, and the times of the first and the last write."""

    collection: str
    documents: int
    created: datetime
    updated: datetime


class DocumentStore:
    """The documents of all tenants, each call within one. The caller checks the scope."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def put(
        self,
        principal: Principal,
        scope: str,
        collection: str,
        documents: Sequence[NewDocument],
        if_absent: bool,
    ) -> int:
        """Writes documents of different keys; returns how many were written."""
        columns = (
            [document.key for document in documents],
            [json.dumps(document.value) for document in documents],
            [document.data for document in documents],
            [document.expires for document in documents],
        )
        async with self._db.tenant_transaction(principal.tenant) as connection:

            async def write() -> int:
                place = (scope, collection)
                await connection.fetch_rows("documents_lock", *place)
                await connection.fetch_rows("documents_expire", *place, columns[0])
                rows = await connection.fetch_rows(
                    "documents_put", scope, collection, *columns, if_absent
                )
                return len(rows)

            return int(await run_once(connection, "put_documents", write))

    async def list_documents(
        self,
        principal: Principal,
        scope: str,
        collection: str,
        keys: Sequence[str] | None,
        prefix: str,
        after: int | None,
        newest_first: bool,
        limit: int,
    ) -> tuple[list[StoredDocument], bool]:
        """Documents of a collection in the order of writing, or in the opposite one; and whether
        there are more. A page ends before `PAGE_BYTES`, but has one document at least."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            rows = await connection.fetch_rows(
                "documents_list",
                scope,
                collection,
                None if keys is None else list(keys),
                prefix,
                after,
                newest_first,
                limit,
                PAGE_BYTES,
            )
        found = [
            StoredDocument(
                row["key"],
                row["position"],
                json.loads(row["value"]),
                None if row["data"] is None else bytes(row["data"]),
                row["created"],
                row["updated"],
                row["expires"],
            )
            for row in rows
        ]
        return found, bool(rows) and bool(rows[0]["is_cut"])

    async def list_collections(
        self, principal: Principal, scope: str, prefix: str, after: str, limit: int
    ) -> list[DocumentCollection]:
        """Collections in the order of their names."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            rows = await connection.fetch_rows("documents_collections", scope, prefix, after, limit)
        return [DocumentCollection(**row) for row in rows]

    async def delete(
        self,
        principal: Principal,
        scope: str,
        collection: str,
        keys: Sequence[str] | None,
        is_prefix: bool,
    ) -> int:
        """Deletes documents; returns how many there were."""
        async with self._db.tenant_transaction(principal.tenant) as connection:

            async def remove() -> int:
                chosen = None if keys is None else list(keys)
                return int(
                    await connection.fetch_value(
                        "documents_delete", scope, collection, chosen, is_prefix
                    )
                )

            return int(await run_once(connection, "delete_documents", remove))

    async def sweep(self) -> int:
        """Deletes expired documents of all tenants; returns how many there were."""
        return int(await self._db.call("delete_expired_documents", SWEPT_AT_ONCE))
