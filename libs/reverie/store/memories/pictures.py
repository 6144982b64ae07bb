"""Stores pictures beside the memories that carry them, by the hash of their bytes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import NotFound
from reverie.store.db.database import Database


@dataclass(frozen=True)
class StoredPicture:
    """A picture without its bytes; `size` counts them."""

    memory: UUID
    hash: bytes
    media_type: str
    size: int
    created: datetime


class PictureStore:
    """Pictures of memories. Each memory has its own: what others carry is nobody's business."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def put(
        self, principal: Principal, memory: UUID, digest: bytes, media_type: str, data: bytes
    ) -> bool:
        """Stores a picture of a memory that the caller may write; False if it is there already.

        Raises `NotFound` if the memory was deleted meanwhile.
        """
        async with self._db.tenant_transaction(principal.tenant) as connection:
            created = await connection.fetch_value("picture_put", memory, digest, media_type, data)
        if created is None:
            raise NotFound("memory", str(memory))
        return bool(created)

    async def list_pictures(
        self, principal: Principal, memory: UUID, after: bytes, limit: int
    ) -> list[StoredPicture]:
        """The pictures of a memory, by hash, after one of them."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "picture_list", memory, list(principal.reads), after, limit
            )
        return [StoredPicture(**row) for row in found]

    async def get(
        self, principal: Principal, memory: UUID, digest: bytes
    ) -> tuple[StoredPicture, bytes]:
        """A picture with its bytes. Raises `NotFound`."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            row = await connection.fetch_row("picture_data", memory, list(principal.reads), digest)
        if row is None:
            raise NotFound("picture", digest.hex())
        fields: dict[str, Any] = dict(row)
        data = bytes(fields.pop("data"))
        return StoredPicture(**fields), data

    async def delete(self, principal: Principal, memory: UUID, digest: bytes) -> None:
        """Deletes a picture of a memory that the caller may write, if it is there."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            await connection.fetch_value("picture_delete", memory, digest)
