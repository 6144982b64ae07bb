"""Sealing the secrets of all tenants anew under the newest master key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg

from reverie.domain.errors import Misconfigured
from reverie.store.bootstrap import _connect, _enter, _tenants
from reverie.store.sealing import SETTING, Place, Sealer

_BATCH = 200
_COUNT = "select count(*) as n from vault where tenant = %s and secret and key_id <> %s"
_NEXT = """
select scope, key, sealed, key_id, version from vault
where tenant = %s and secret and key_id <> %s order by scope, key limit %s for update
"""
_WRITE = """
update vault set sealed = %s, key_id = %s where tenant = %s and scope = %s and key = %s
"""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Rotated:
    """How many values were sealed anew, and under which master key all stand now."""

    values: int
    key_id: str


def rotate(url: str, sealer: Sealer, progress: Progress) -> Rotated:
    """Seals what stands under older keys anew, a few hundred at a time; may be broken off.

    `progress` is told how many are done and how many there are. Raises `Misconfigured` without a
    key, `Unavailable` where the key of a value is missing; what was done stays done.
    """
    if sealer.newest is None:
        raise Misconfigured(SETTING, "is not set: there is no key to rotate to")
    with _connect(url) as connection:
        tenants = [number for number, _ in _tenants(connection)]
    behind = {number: _behind(url, number, sealer.newest) for number in tenants}
    done, total = 0, sum(behind.values())
    for number in [one for one, count in behind.items() if count]:
        while moved := _batch(url, number, sealer):
            done += moved
            progress(done, max(done, total))
    return Rotated(done, sealer.newest)


def _behind(url: str, tenant: int, newest: str) -> int:
    with _connect(url) as connection:
        _enter(connection, tenant)
        row = connection.execute(_COUNT, (tenant, newest)).fetchone()
    return row["n"] if row else 0


def _batch(url: str, tenant: int, sealer: Sealer) -> int:
    with _connect(url) as connection:
        _enter(connection, tenant)
        found = connection.execute(_NEXT, (tenant, sealer.newest, _BATCH)).fetchall()
        for row in found:
            _reseal(connection, tenant, sealer, row)
    return len(found)


def _reseal(
    connection: psycopg.Connection[dict[str, Any]], tenant: int, sealer: Sealer, row: dict[str, Any]
) -> None:
    place = Place(tenant, row["scope"], row["key"])
    sealed, key_id = sealer.seal(place, sealer.open(place, row["sealed"], row["key_id"]))
    connection.execute(_WRITE, (sealed, key_id, tenant, place.scope, place.key))
