"""The changes of memories that recall indexes still have to read."""

from __future__ import annotations

from datetime import timedelta

from reverie.store.db.database import Database

RETENTION = timedelta(hours=2)
"""An index that did not ask for changes for so long must be loaded again."""


class IndexChangeTable:
    """The changes of all tenants, which the database records by itself."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def sweep(self) -> int:
        """Deletes changes older than `RETENTION`, of all tenants; returns the count."""
        return int(await self._db.call("delete_old_rows", "memory_change", RETENTION))
