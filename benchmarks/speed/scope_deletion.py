"""Measures deleting a scope of 95,000 memories, and how long other calls wait meanwhile.

How long the calls take one by one, and how long others wait meanwhile: each 50 ms one memory is
written into another scope of the tenant, and one into another tenant.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

import psycopg

from benchmarks.support.common import CallTimes, parser, show
from reverie.bus.nats_bus import connect
from reverie.contracts.events import memory_subject
from reverie.domain.access.principals import KeyRole
from reverie.testing import servers
from reverie.testing.models import model_home
from tests.store.db.large_tenant import BIG, VECTORS, load
from tests.support.stack import Stack, running_stack
from tests.support.store_setup import PATH

PAUSE = 0.05
AT_ONCE = 200
CALL_SECONDS = 30.0
NAME = "big"
SPREAD = "update memory set scope = case when doc %% 20 = 1 then 'global' else 'project/p0' end"


async def main() -> None:
    """Prints how it went."""
    with (
        servers.open_run() as run,
        servers.fresh_database(run) as database,
        servers.own_nats(run) as nats,
    ):
        async with running_stack(database, nats.url, model_home()) as stack:
            await _measure(stack, nats.url)


async def _measure(stack: Stack, nats_url: str) -> None:
    key, other = stack.key_of(tenant=NAME, role=KeyRole.ADMIN), stack.key_of(tenant="small")
    ids = _fill(stack.admin_url)
    await _announce(nats_url, ids)
    scope = {"method": "DELETE", "path": "/v1/admin/scopes?scope=project/p0&below=true"}
    lines = [await _deleted("a scope of 95,000 memories", stack, key, [key, other], scope)]
    heads = ("deleting", "rows", "messages", "calls", "whole", "longest call", "others p99", "max")
    show("Deletion through the gateway", heads, lines)


def _fill(admin_url: str) -> list[str]:
    """A tenant's memories with all that hangs on them; their ids."""
    with psycopg.connect(admin_url, options=PATH, autocommit=True) as connection:
        connection.execute("drop index if exists vec_bge_small_en_v1_5_hnsw")
        [(tenant,)] = connection.execute("select id from tenant where name = %s", [NAME]).fetchall()
        load(admin_url, tenant, BIG, VECTORS)
        connection.execute("delete from outbox")
        connection.execute(f"{SPREAD} where tenant = %s", [tenant])
        connection.execute("vacuum analyze")
        found = connection.execute("select id from memory where tenant = %s", [tenant])
        return [str(one) for (one,) in found.fetchall()]


async def _announce(nats_url: str, ids: list[str]) -> None:
    async with connect(nats_url, "bench") as bus:
        await bus.wait_connected(5)
        subject = memory_subject(NAME, "enriched")
        for nth in range(0, len(ids), AT_ONCE):
            bodies = [json.dumps({"id": one, "version": 1}) for one in ids[nth : nth + AT_ONCE]]
            await asyncio.gather(*(bus.send(subject, body.encode(), {}) for body in bodies))


async def _deleted(
    what: str, stack: Stack, key: str, writers: list[str], call: Mapping[str, object]
) -> tuple[str, ...]:
    waits: list[float] = []
    beside = [asyncio.create_task(_write(stack, one, waits)) for one in writers]
    begun = time.perf_counter()
    calls, rows, messages = await _until_done(stack, key, call)
    whole = time.perf_counter() - begun
    for one in beside:
        one.cancel()
        with suppress(asyncio.CancelledError):
            await one
    others = CallTimes(waits, whole)
    return (
        what,
        f"{sum(rows.values()):,}",
        f"{sum(messages.values()):,}",
        str(len(calls)),
        f"{whole:.0f} s",
        f"{max(calls):.1f} s",
        f"{others.at(0.99):.0f} ms",
        f"{others.at(1):.0f} ms",
    )


async def _until_done(
    stack: Stack, key: str, call: Mapping[str, object]
) -> tuple[list[float], Counter[str], Counter[str]]:
    """The same call until it says that all is done: how long each took, and what went."""
    calls: list[float] = []
    rows, messages = Counter[str](), Counter[str]()
    path, cursor = str(call["path"]), None
    while True:
        begun = time.perf_counter()
        where = f"{path}&cursor={cursor}" if cursor else path
        reply = await stack.call(str(call["method"]), where, call.get("json"), key)
        calls.append(time.perf_counter() - begun)
        assert reply.status == 200, reply
        assert calls[-1] < CALL_SECONDS, calls
        rows.update(reply.body["rows"])
        messages.update(reply.body["messages"])
        print(f"{calls[-1]:.1f} s", reply.body["rows"], reply.body["messages"], flush=True)
        if reply.body["done"]:
            return calls, rows, messages
        cursor = reply.body.get("next")


async def _write(stack: Stack, key: str, waits: list[float]) -> None:
    for number in range(1_000_000):
        begun = time.perf_counter()
        body = {"content": f"written beside, {number} of {id(waits)}", "scope": "project/kept"}
        await stack.post("/v1/remember", body, key=key)
        waits.append(time.perf_counter() - begun)
        await asyncio.sleep(PAUSE)


if __name__ == "__main__":
    parser(__doc__).parse_args()
    asyncio.run(main())
