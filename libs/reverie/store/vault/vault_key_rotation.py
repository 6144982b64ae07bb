"""Re-encrypts the secrets of all tenants under the newest master key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from psycopg.sql import SQL

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.store.db.encryption import KEY_SETTING, SecretCipher, SecretLocation
from reverie.store.platform.api_keys import connect_as_owner, select_tenants, set_tenant

_BATCH_SIZE = 200


@dataclass(frozen=True, eq=False)
class _SecretTable:
    """A table with encrypted values, and the expressions of their scope and key."""

    name: SQL
    scope: SQL
    key: SQL


_TABLES = (
    _SecretTable(SQL("vault"), SQL("scope"), SQL("key")),
    _SecretTable(SQL("vault_retired"), SQL("scope"), SQL("key")),
    _SecretTable(SQL("webhook"), SQL("'project/' || project"), SQL("'webhook ' || kind")),
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class RotationResult:
    """The number of re-encrypted values, the new master key, and the values that no key opens."""

    count: int
    key_id: str
    unreadable: tuple[SecretLocation, ...] = ()


def reencrypt_secrets(
    database_url: str, cipher: SecretCipher, progress: Progress
) -> RotationResult:
    """Re-encrypts values of older keys, a few hundred at a time; may be interrupted.

    `progress` receives the number done and the total. Values that no key opens stay unchanged.
    Raises `Misconfigured` without a key.
    """
    if cipher.newest_key_id is None:
        raise Misconfigured(KEY_SETTING, "is not set: there is no key to rotate to")
    with connect_as_owner(database_url) as connection:
        tenants = [tenant for tenant, _ in select_tenants(connection)]
    tables = [(table, tenant) for table in _TABLES for tenant in tenants]
    outstanding = {
        entry: _count_outstanding(database_url, *entry, cipher.newest_key_id) for entry in tables
    }
    done, total, unreadable = 0, sum(outstanding.values()), list[SecretLocation]()
    for table, tenant in [entry for entry, count in outstanding.items() if count]:
        position: str | None = "(0,0)"
        while position:
            rotated, skipped, position = _reencrypt_batch(
                database_url, table, tenant, position, cipher
            )
            unreadable += skipped
            done += rotated
            if rotated:
                progress(done, max(done, total))
    return RotationResult(done, cipher.newest_key_id, tuple(unreadable))


def _count_outstanding(database_url: str, table: _SecretTable, tenant: int, newest: str) -> int:
    sql = SQL("select count(*) as n from {name} where tenant = %s and key_id <> %s")
    with connect_as_owner(database_url) as connection:
        set_tenant(connection, tenant)
        row = connection.execute(sql.format(**vars(table)), (tenant, newest)).fetchone()
    return row["n"] if row else 0


def _reencrypt_batch(
    database_url: str, table: _SecretTable, tenant: int, after: str, cipher: SecretCipher
) -> tuple[int, list[SecretLocation], str | None]:
    """Re-encrypts the rows after a physical position.

    Returns the count, the values that failed, and the last position, if any. A row that was
    re-encrypted moves behind the others, but is no longer looked for.
    """
    next_sql = SQL(
        "select {scope} as scope, {key} as key, sealed, key_id, ctid::text as position from {name}"
        " where tenant = %s and key_id <> %s and ctid > %s::tid order by ctid limit %s for update"
    ).format(**vars(table))
    update_sql = SQL(
        "update {name} set sealed = %s, key_id = %s where tenant = %s and ctid = %s::tid"
    ).format(name=table.name)
    skipped = list[SecretLocation]()
    with connect_as_owner(database_url) as connection:
        set_tenant(connection, tenant)
        args = (tenant, cipher.newest_key_id, after, _BATCH_SIZE)
        found = connection.execute(next_sql, args).fetchall()
        for row in found:
            location = SecretLocation(tenant, row["scope"], row["key"])
            try:
                value = cipher.decrypt(location, row["sealed"], row["key_id"])
            except Unavailable:
                skipped.append(location)
                continue
            connection.execute(
                update_sql, (*cipher.encrypt(location, value), tenant, row["position"])
            )
    return len(found) - len(skipped), skipped, found[-1]["position"] if found else None
