"""Key-value store per tenant and scope, with encrypted secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Conflict, NotFound, Unavailable
from reverie.domain.core.memory import is_state
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.redaction.vault_secrets import SecretMatcher, VaultSecret, collect_secret_texts
from reverie.store.db.database import Database
from reverie.store.db.encryption import SecretCipher, SecretLocation
from reverie.store.db.idempotency import run_once

log = structlog.get_logger()

_CACHE_SIZE = 1024
_CANDIDATE_FACTOR = 4
RESTORE_DAYS = 30
"""Days after which a replaced or deleted secret cannot be put back in texts any more."""
FREQUENT_WRITES = 100
"""A key of memories written more often than this is state, not memory."""


@dataclass(frozen=True)
class VaultEntryInfo:
    """The description of an entry without its value."""

    scope: str
    key: str
    secret: bool
    readable: bool
    version: int
    written_by: str
    created: datetime
    updated: datetime


@dataclass(frozen=True)
class StateCandidate:
    """A key of memories that was written many times, or a memory that is state."""

    scope: str
    key: str | None
    versions: int
    memory: UUID | None = None


class VaultStore:
    """The entries of all tenants, each call within one."""

    def __init__(
        self,
        database: Database,
        cipher: SecretCipher | None = None,
        on_secrets_loaded: Callable[[int, SecretMatcher], None] | None = None,
    ) -> None:
        """Without a cipher no secret can be stored. `on_secrets_loaded` gets the secrets of a
        tenant each time they are asked for."""
        self._db = database
        self._cipher = cipher or SecretCipher([])
        self._on_secrets_loaded = on_secrets_loaded
        self._redactors: dict[int, Redactor] = {}

    @property
    def can_encrypt(self) -> bool:
        """Whether secret values can be stored."""
        return self._cipher.newest_key_id is not None

    async def put(
        self,
        principal: Principal,
        scope: str,
        key: str,
        value: Any,
        secret: bool,
        expected: int | None,
    ) -> int:
        """Writes an entry; returns the version. Raises `Conflict` if it is not at the expected
        version."""
        ciphertext, key_id = None, None
        if secret:
            ciphertext, key_id = self._cipher.encrypt(
                SecretLocation(principal.tenant, scope, key), value
            )
        covers = list(principal.writable_patterns) if secret else []
        actor = principal.key_id
        values = (None if secret else value, ciphertext, secret, key_id, actor, covers, expected)
        async with self._db.tenant_transaction(principal.tenant) as connection:
            version = await run_once(
                connection, "put", lambda: connection.fetch_value("vault_put", scope, key, *values)
            )
            if version is None:
                raise Conflict(f"the entry {key} in {scope} is not of version {expected}")
        return int(version)

    async def find(self, principal: Principal, scope: str, key: str) -> VaultEntryInfo | None:
        """Returns the entry without its value, if the key may read it."""
        row = await self._load_row(principal, scope, key)
        return None if row is None else self._parse_entry(row)

    async def get(self, principal: Principal, scope: str, key: str) -> tuple[VaultEntryInfo, Any]:
        """The entry and its value. Raises `NotFound`, or `Unavailable` without its master key."""
        row = await self._load_row(principal, scope, key)
        if row is None:
            raise NotFound("vault entry", key)
        value = row["value"]
        if row["secret"]:
            location = SecretLocation(principal.tenant, scope, key)
            value = self._cipher.decrypt(location, row["sealed"], row["key_id"])
        return self._parse_entry(row), value

    async def _load_row(self, principal: Principal, scope: str, key: str) -> Any:
        async with self._db.tenant_transaction(principal.tenant) as connection:
            return await connection.fetch_row("vault_get", scope, key, list(principal.reads))

    async def page(
        self, principal: Principal, scope: str | None, after: tuple[str, str], limit: int
    ) -> list[VaultEntryInfo]:
        """Names and metadata in the order of scope and key."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "vault_list", list(principal.reads), scope, *after, limit
            )
        return [self._parse_entry(row) for row in found]

    async def delete(
        self, principal: Principal, scope: str, key: str, restore: bool = False
    ) -> int:
        """Deletes an entry; returns its last version, or 0 for one that was deleted before.

        `restore` requests that its values are put back in texts. Raises `NotFound` without an
        entry, or a value to restore.
        """
        async with self._db.tenant_transaction(principal.tenant) as connection:
            version = await run_once(
                connection,
                "delete",
                lambda: connection.fetch_value(
                    "vault_delete", scope, key, list(principal.writable_patterns)
                ),
            )
            restored = restore and await connection.fetch_value("vault_restore", scope, key)
            if version is None and not restored:
                raise NotFound("vault entry", key)
        return int(version or 0)

    async def sweep_retired(self) -> int:
        """Deletes secrets that were replaced or deleted too long ago to be put back."""
        age = timedelta(days=RESTORE_DAYS)
        return int(await self._db.call("delete_old_rows", "vault_retired", age))

    async def list_frequent_keys(
        self,
        principal: Principal,
        limit: int,
        locations: Sequence[tuple[str, str]] | None = None,
        after: StateCandidate | None = None,
    ) -> list[StateCandidate]:
        """Lists keys of memories that are written too often for memories, busiest first.

        Of all, or of these scopes and keys; those after the given one.
        """
        scopes = None if locations is None else [scope for scope, _ in locations]
        keys = None if locations is None else [key for _, key in locations]
        async with self._db.tenant_transaction(principal.tenant) as connection:
            position = (after.versions, after.scope, after.key) if after else (None, None, None)
            found = await connection.fetch_rows(
                "vault_frequent_keys",
                list(principal.reads),
                FREQUENT_WRITES,
                scopes,
                keys,
                *position,
                limit,
            )
        return [StateCandidate(row["scope"], row["key"], row["versions"]) for row in found]

    async def list_state_memories(
        self, principal: Principal, limit: int, below: UUID | None = None
    ) -> tuple[list[StateCandidate], UUID | None]:
        """Lists active memories that are counters or JSON blobs, the newest first, below an id.

        Also returns the id to continue below. It is returned even if few or no memories were found.
        """
        row_limit = limit * _CANDIDATE_FACTOR
        async with self._db.tenant_transaction(principal.tenant) as connection:
            rows = await connection.fetch_rows(
                "vault_state_memories", list(principal.reads), below, row_limit
            )
        states = [row for row in rows if is_state(row["content"])]
        found = [
            StateCandidate(row["scope"], row["key"], row["version"], row["id"]) for row in states
        ]
        if len(found) > limit:
            return found[:limit], found[limit - 1].memory
        return found, rows[-1]["id"] if len(rows) == row_limit else None

    async def load_redactor(self, tenant: int) -> Redactor:
        """Redacts the tenant's secrets; they are read again only when one of them changed."""
        epoch = int(await self._db.call("vault_epoch_of", tenant))
        cached = self._redactors.get(tenant)
        if cached and cached.secrets.epoch == epoch:
            self._notify(tenant, cached.secrets)
            return cached
        rows = await self._load_secret_rows(tenant) if epoch else []
        # Ten thousand secrets take half a second.
        secrets = await asyncio.to_thread(self._build_matcher, tenant, rows, epoch)
        self._redactors.pop(tenant, None)
        redactor = self._redactors[tenant] = Redactor(secrets)
        while len(self._redactors) > _CACHE_SIZE:
            del self._redactors[next(iter(self._redactors))]
        self._notify(tenant, secrets)
        return redactor

    def _notify(self, tenant: int, secrets: SecretMatcher) -> None:
        if self._on_secrets_loaded:
            self._on_secrets_loaded(tenant, secrets)

    async def load_cached_redactor(self, tenant: int) -> Redactor:
        """The redactor that was loaded last: for writes that compare the epoch themselves."""
        return self._redactors.get(tenant) or await self.load_redactor(tenant)

    async def _load_secret_rows(self, tenant: int) -> Sequence[Any]:
        async with self._db.tenant_transaction(tenant) as connection:
            return await connection.fetch_rows("vault_secrets")

    def _build_matcher(self, tenant: int, rows: Sequence[Any], epoch: int) -> SecretMatcher:
        secrets = [secret for row in rows for secret in self._decrypt_row(tenant, row)]
        return SecretMatcher(secrets, epoch)

    def _decrypt_row(self, tenant: int, row: Any) -> Sequence[VaultSecret]:
        location = SecretLocation(tenant, row["scope"], row["key"])
        try:
            value = self._cipher.decrypt(location, row["sealed"], row["key_id"])
        except Unavailable as error:
            log.error("vault_entry_unreadable", key=location.key, reason=str(error))
            return []
        return [
            VaultSecret(
                row["scope"], row["key"], text, tuple(row["covers"]), row["salt"], row["restore"]
            )
            for text in collect_secret_texts(value)
        ]

    def _parse_entry(self, row: Any) -> VaultEntryInfo:
        return VaultEntryInfo(
            scope=row["scope"],
            key=row["key"],
            secret=row["secret"],
            readable=self._cipher.has_key(row["key_id"]),
            version=row["version"],
            written_by=row["actor"],
            created=row["created"],
            updated=row["updated"],
        )
