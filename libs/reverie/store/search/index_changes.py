"""Deletes old records of changed memories, from which recall indexes are brought up to date."""

from __future__ import annotations

from datetime import timedelta

from reverie.store.db.database import Database

RETENTION = timedelta(hours=2)
"""An index that asked for changes longer ago than this must be loaded again."""


class IndexChangeTable:
    """The changed memories of all tenants, which triggers record."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def sweep(self) -> int:
        """Deletes changes older than `RETENTION`, of all tenants; returns the count."""
        return int(await self._db.call("delete_old_rows", "memory_change", RETENTION))
