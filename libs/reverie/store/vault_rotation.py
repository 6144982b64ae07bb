"""Sealing the secrets of all tenants anew under the newest master key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reverie.domain.errors import Misconfigured, Unavailable
from reverie.store.bootstrap import _connect, _enter, _tenants
from reverie.store.sealing import SETTING, Place, Sealer

_BATCH = 200


@dataclass(frozen=True)
class _Kept:
    """A table that holds sealed values: how many are behind, the next of them, and to write one."""

    count: str
    next: str
    write: str


_VAULT = _Kept(
    "select count(*) as n from vault where tenant = %s and secret and key_id <> %s",
    """
    select scope, key, sealed, key_id from vault
    where tenant = %s and secret and key_id <> %s and (scope, key) > (%s, %s)
    order by scope, key limit %s for update
    """,
    "update vault set sealed = %s, key_id = %s where tenant = %s and scope = %s and key = %s",
)
_HOOKS = _Kept(
    "select count(*) as n from git_hook where tenant = %s and key_id <> %s",
    """
    select 'project/' || project as scope, 'webhook ' || kind as key, sealed, key_id from git_hook
    where tenant = %s and key_id <> %s and ('project/' || project, 'webhook ' || kind) > (%s, %s)
    order by 1, 2 limit %s for update
    """,
    """
    update git_hook set sealed = %s, key_id = %s
    where tenant = %s and 'project/' || project = %s and 'webhook ' || kind = %s
    """,
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Rotated:
    """How many values were sealed anew, under which master key, and which no key opens."""

    values: int
    key_id: str
    lost: tuple[Place, ...] = ()


def rotate(url: str, sealer: Sealer, progress: Progress) -> Rotated:
    """Seals what stands under older keys anew, a few hundred at a time; may be broken off.

    `progress` is told how many are done and how many there are. What no key opens stays as it is.
    Raises `Misconfigured` without a key.
    """
    if sealer.newest is None:
        raise Misconfigured(SETTING, "is not set: there is no key to rotate to")
    with _connect(url) as connection:
        tenants = [number for number, _ in _tenants(connection)]
    places = [(kept, number) for kept in (_VAULT, _HOOKS) for number in tenants]
    behind = {one: _behind(url, *one, sealer.newest) for one in places}
    done, total, lost = 0, sum(behind.values()), list[Place]()
    for kept, number in [one for one, count in behind.items() if count]:
        after: Place | None = Place(number, "", "")
        while after:
            moved, closed, after = _batch(url, kept, after, sealer)
            lost += closed
            done += moved
            if moved:
                progress(done, max(done, total))
    return Rotated(done, sealer.newest, tuple(lost))


def _behind(url: str, kept: _Kept, tenant: int, newest: str) -> int:
    with _connect(url) as connection:
        _enter(connection, tenant)
        row = connection.execute(kept.count, (tenant, newest)).fetchone()
    return row["n"] if row else 0


def _batch(
    url: str, kept: _Kept, after: Place, sealer: Sealer
) -> tuple[int, list[Place], Place | None]:
    """How many were sealed anew, what could not be opened, and the last place, if there was one."""
    tenant, closed, last = after.tenant, list[Place](), None
    with _connect(url) as connection:
        _enter(connection, tenant)
        sought = (tenant, sealer.newest, after.scope, after.key, _BATCH)
        found = connection.execute(kept.next, sought).fetchall()
        for row in found:
            last = Place(tenant, row["scope"], row["key"])
            try:
                value = sealer.open(last, row["sealed"], row["key_id"])
            except Unavailable:
                closed.append(last)
                continue
            sealed, key_id = sealer.seal(last, value)
            connection.execute(kept.write, (sealed, key_id, tenant, last.scope, last.key))
    return len(found) - len(closed), closed, last
