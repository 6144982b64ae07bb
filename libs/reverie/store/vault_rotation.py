"""Sealing the secrets of all tenants anew under the newest master key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reverie.domain.errors import Misconfigured, Unavailable
from reverie.store.bootstrap import _connect, _enter, _tenants
from reverie.store.sealing import SETTING, Place, Sealer

_BATCH = 200
_COUNT = "select count(*) as n from vault where tenant = %s and secret and key_id <> %s"
_NEXT = """
select scope, key, sealed, key_id from vault
where tenant = %s and secret and key_id <> %s and (scope, key) > (%s, %s)
order by scope, key limit %s for update
"""
_WRITE = """
update vault set sealed = %s, key_id = %s where tenant = %s and scope = %s and key = %s
"""

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
    behind = {number: _behind(url, number, sealer.newest) for number in tenants}
    done, total, lost = 0, sum(behind.values()), list[Place]()
    for number in [one for one, count in behind.items() if count]:
        after: Place | None = Place(number, "", "")
        while after:
            moved, closed, after = _batch(url, after, sealer)
            lost += closed
            done += moved
            if moved:
                progress(done, max(done, total))
    return Rotated(done, sealer.newest, tuple(lost))


def _behind(url: str, tenant: int, newest: str) -> int:
    with _connect(url) as connection:
        _enter(connection, tenant)
        row = connection.execute(_COUNT, (tenant, newest)).fetchone()
    return row["n"] if row else 0


def _batch(url: str, after: Place, sealer: Sealer) -> tuple[int, list[Place], Place | None]:
    """How many were sealed anew, what could not be opened, and the last place, if there was one."""
    tenant, closed, last = after.tenant, list[Place](), None
    with _connect(url) as connection:
        _enter(connection, tenant)
        sought = (tenant, sealer.newest, after.scope, after.key, _BATCH)
        found = connection.execute(_NEXT, sought).fetchall()
        for row in found:
            last = Place(tenant, row["scope"], row["key"])
            try:
                value = sealer.open(last, row["sealed"], row["key_id"])
            except Unavailable:
                closed.append(last)
                continue
            sealed, key_id = sealer.seal(last, value)
            connection.execute(_WRITE, (sealed, key_id, tenant, last.scope, last.key))
    return len(found) - len(closed), closed, last
