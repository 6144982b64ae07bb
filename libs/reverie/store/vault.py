"""The vault: key-value state per tenant and scope, secret values sealed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog

from reverie.domain.access import Principal
from reverie.domain.errors import Conflict, NotFound, Unavailable
from reverie.domain.known_secrets import Known, KnownSecret, secret_texts
from reverie.domain.state import is_state
from reverie.store.database import Database
from reverie.store.effects import once
from reverie.store.sealing import Place, Sealer

log = structlog.get_logger()

_MOST_KEPT = 1024
_CANDIDATES = 4
MANY_VERSIONS = 100
"""A key of memories written more often than this is state, not memory."""


@dataclass(frozen=True)
class VaultEntry:
    """What is known of an entry without its value."""

    scope: str
    key: str
    secret: bool
    readable: bool
    version: int
    who: str
    created: datetime
    updated: datetime


@dataclass(frozen=True)
class Busy:
    """A key of memories that was written many times, or a memory that is state."""

    scope: str
    key: str | None
    versions: int
    memory: UUID | None = None


class Vault:
    """The entries of all tenants, each call within one."""

    def __init__(
        self,
        database: Database,
        sealer: Sealer | None = None,
        learned: Callable[[int, Known], None] | None = None,
    ) -> None:
        """Without a sealer no secret is taken. `learned` is told what secrets a tenant has,
        whenever they were read anew."""
        self._db = database
        self._sealer = sealer or Sealer([])
        self._learned = learned
        self._known: dict[int, tuple[int, Known]] = {}

    @property
    def seals(self) -> bool:
        """Whether secret values can be taken."""
        return self._sealer.newest is not None

    async def put(
        self, who: Principal, scope: str, key: str, value: Any, secret: bool, expected: int | None
    ) -> int:
        """The version written. Raises `Conflict` where the entry has not the version expected."""
        sealed, key_id = None, None
        if secret:
            sealed, key_id = self._sealer.seal(Place(who.tenant, scope, key), value)
        kept = (None if secret else value, sealed, secret, key_id, who.key_id, expected)
        async with self._db.tenant(who.tenant) as tenant:
            version = await once(
                tenant, "put", lambda: tenant.value("vault_put", scope, key, *kept)
            )
            if version is None:
                raise Conflict(f"the entry {key} in {scope} is not of version {expected}")
        return int(version)

    async def find(self, who: Principal, scope: str, key: str) -> VaultEntry | None:
        """The entry without its value, where the key may read it."""
        row = await self._row(who, scope, key)
        return None if row is None else self._entry(row)

    async def get(self, who: Principal, scope: str, key: str) -> tuple[VaultEntry, Any]:
        """The entry and its value. Raises `NotFound`, or `Unavailable` without its master key."""
        row = await self._row(who, scope, key)
        if row is None:
            raise NotFound("vault entry", key)
        value = row["value"]
        if row["secret"]:
            place = Place(who.tenant, scope, key)
            value = self._sealer.open(place, row["sealed"], row["key_id"])
        return self._entry(row), value

    async def _row(self, who: Principal, scope: str, key: str) -> Any:
        async with self._db.tenant(who.tenant) as tenant:
            return await tenant.row("vault_get", scope, key, list(who.reads))

    async def page(
        self, who: Principal, scope: str | None, after: tuple[str, str], limit: int
    ) -> list[VaultEntry]:
        """Names and metadata in the order of scope and key."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("vault_list", list(who.reads), scope, *after, limit)
        return [self._entry(row) for row in found]

    async def delete(self, who: Principal, scope: str, key: str) -> int:
        """Removes an entry; answers its last version. Raises `NotFound`."""
        async with self._db.tenant(who.tenant) as tenant:
            version = await once(
                tenant,
                "delete",
                lambda: tenant.value("vault_delete", scope, key, list(who.writable)),
            )
            if version is None:
                raise NotFound("vault entry", key)
        return int(version)

    async def advice(
        self,
        who: Principal,
        limit: int,
        places: Sequence[tuple[str, str]] | None = None,
        after: Busy | None = None,
    ) -> list[Busy]:
        """Keys of memories that are written so often that they belong here, busiest first; of all,
        or of these scopes and keys; those that come after one."""
        scopes = None if places is None else [scope for scope, _ in places]
        keys = None if places is None else [key for _, key in places]
        async with self._db.tenant(who.tenant) as tenant:
            at = (after.versions, after.scope, after.key) if after else (None, None, None)
            found = await tenant.rows(
                "vault_advice", list(who.reads), MANY_VERSIONS, scopes, keys, *at, limit
            )
        return [Busy(row["scope"], row["key"], row["versions"]) for row in found]

    async def states(
        self, who: Principal, limit: int, below: UUID | None = None
    ) -> tuple[list[Busy], UUID | None]:
        """Active memories that are counters or JSON blobs, the newest first, below an id.

        Few may be found where many look like state and are none: then the id to go on below is
        there all the same.
        """
        most = limit * _CANDIDATES
        async with self._db.tenant(who.tenant) as tenant:
            looked = await tenant.rows("vault_states", list(who.reads), below, most)
        states = [row for row in looked if is_state(row["content"])]
        found = [Busy(row["scope"], row["key"], row["version"], row["id"]) for row in states]
        if len(found) > limit:
            return found[:limit], found[limit - 1].memory
        return found, looked[-1]["id"] if len(looked) == most else None

    async def known(self, tenant: int) -> Known:
        """The tenant's secret values, opened; read again only when one of them changed."""
        epoch = int(await self._db.call("vault_epoch", tenant))
        kept = self._known.get(tenant)
        if kept and kept[0] == epoch:
            return kept[1]
        known = Known(await self._opened(tenant) if epoch else [], epoch)
        self._keep(tenant, epoch, known)
        return known

    async def known_lately(self, tenant: int) -> Known:
        """As they were read last: for a write that compares their epoch itself."""
        kept = self._known.get(tenant)
        return kept[1] if kept else await self.known(tenant)

    def _keep(self, tenant: int, epoch: int, known: Known) -> None:
        self._known.pop(tenant, None)
        self._known[tenant] = (epoch, known)
        while len(self._known) > _MOST_KEPT:
            del self._known[next(iter(self._known))]
        if self._learned:
            self._learned(tenant, known)

    async def _opened(self, tenant: int) -> list[KnownSecret]:
        async with self._db.tenant(tenant) as inside:
            found = await inside.rows("vault_secrets")
        return [secret for row in found for secret in self._open(tenant, row)]

    def _open(self, tenant: int, row: Any) -> Sequence[KnownSecret]:
        place = Place(tenant, row["scope"], row["key"])
        try:
            value = self._sealer.open(place, row["sealed"], row["key_id"])
        except Unavailable as error:
            log.error("vault_entry_closed", key=place.key, reason=str(error))
            return []
        return [KnownSecret(row["scope"], row["key"], text) for text in secret_texts(value)]

    def _entry(self, row: Any) -> VaultEntry:
        return VaultEntry(
            scope=row["scope"],
            key=row["key"],
            secret=row["secret"],
            readable=self._sealer.holds(row["key_id"]),
            version=row["version"],
            who=row["who"],
            created=row["created"],
            updated=row["updated"],
        )
