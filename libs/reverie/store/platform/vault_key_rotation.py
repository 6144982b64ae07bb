"""Re-encrypts the secrets of all tenants under the newest master key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.store.platform.api_keys import connect_as_owner, select_tenants, set_tenant
from reverie.store.platform.encryption import KEY_SETTING, SecretCipher, SecretLocation

_BATCH_SIZE = 200


@dataclass(frozen=True)
class _SecretTable:
    """A table with encrypted values: the count on older keys, the next batch, and a write."""

    count_sql: str
    next_sql: str
    update_sql: str


_VAULT = _SecretTable(
    "select count(*) as n from vault where tenant = %s and secret and key_id <> %s",
    """
    select scope, key, sealed, key_id from vault
    where tenant = %s and secret and key_id <> %s and (scope, key) > (%s, %s)
    order by scope, key limit %s for update
    """,
    "update vault set sealed = %s, key_id = %s where tenant = %s and scope = %s and key = %s",
)
_WEBHOOKS = _SecretTable(
    "select count(*) as n from webhook where tenant = %s and key_id <> %s",
    """
    select 'project/' || project as scope, 'webhook ' || kind as key, sealed, key_id from webhook
    where tenant = %s and key_id <> %s and ('project/' || project, 'webhook ' || kind) > (%s, %s)
    order by 1, 2 limit %s for update
    """,
    """
    update webhook set sealed = %s, key_id = %s
    where tenant = %s and 'project/' || project = %s and 'webhook ' || kind = %s
    """,
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class RotationResult:
    """The number of re-encrypted values, the new master key, and the values that no key opens."""

    count: int
    key_id: str
    unreadable: tuple[SecretLocation, ...] = ()


def rotate_master_key(url: str, cipher: SecretCipher, progress: Progress) -> RotationResult:
    """Re-encrypts values of older keys, a few hundred at a time; may be interrupted.

    `progress` receives the number done and the total. Values that no key opens stay unchanged.
    Raises `Misconfigured` without a key.
    """
    if cipher.newest_key_id is None:
        raise Misconfigured(KEY_SETTING, "is not set: there is no key to rotate to")
    with connect_as_owner(url) as connection:
        tenants = [tenant for tenant, _ in select_tenants(connection)]
    tables = [(table, tenant) for table in (_VAULT, _WEBHOOKS) for tenant in tenants]
    outstanding = {entry: _count_outstanding(url, *entry, cipher.newest_key_id) for entry in tables}
    done, total, unreadable = 0, sum(outstanding.values()), list[SecretLocation]()
    for table, tenant in [entry for entry, count in outstanding.items() if count]:
        after: SecretLocation | None = SecretLocation(tenant, "", "")
        while after:
            rotated, skipped, after = _rotate_batch(url, table, after, cipher)
            unreadable += skipped
            done += rotated
            if rotated:
                progress(done, max(done, total))
    return RotationResult(done, cipher.newest_key_id, tuple(unreadable))


def _count_outstanding(url: str, table: _SecretTable, tenant: int, newest: str) -> int:
    with connect_as_owner(url) as connection:
        set_tenant(connection, tenant)
        row = connection.execute(table.count_sql, (tenant, newest)).fetchone()
    return row["n"] if row else 0


def _rotate_batch(
    url: str, table: _SecretTable, after: SecretLocation, cipher: SecretCipher
) -> tuple[int, list[SecretLocation], SecretLocation | None]:
    """Re-encrypts a batch; returns the count, the values that failed, and the last position, if
    any."""
    tenant, skipped, last = after.tenant, list[SecretLocation](), None
    with connect_as_owner(url) as connection:
        set_tenant(connection, tenant)
        args = (tenant, cipher.newest_key_id, after.scope, after.key, _BATCH_SIZE)
        found = connection.execute(table.next_sql, args).fetchall()
        for row in found:
            last = SecretLocation(tenant, row["scope"], row["key"])
            try:
                value = cipher.decrypt(last, row["sealed"], row["key_id"])
            except Unavailable:
                skipped.append(last)
                continue
            ciphertext, key_id = cipher.encrypt(last, value)
            connection.execute(table.update_sql, (ciphertext, key_id, tenant, last.scope, last.key))
    return len(found) - len(skipped), skipped, last
