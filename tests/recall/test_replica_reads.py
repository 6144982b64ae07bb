"""Recall reads from a replica and sees the writes that the request names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import UUID

import pytest
from pydantic import SecretStr

from reverie.client import AsyncReverie
from reverie.domain.core.consistency import later_lsn, parse_lsn
from reverie.store.db import replica as replicas
from reverie.store.db.database import open_database
from reverie.store.db.replica import ReplicaOptions, require_position
from reverie.store.search import recall_index_cache
from reverie.testing.chaos_proxy import ChaosProxy
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls, TestRun
from reverie_services.recall.pipeline.recall import recall
from reverie_services.recall.write_positions import WritePositions
from tests.support.proxies import at_port, port_of
from tests.support.recall_engines import ask, open_engines
from tests.support.replica_servers import ReplicatedPostgres, start_replicated_postgres
from tests.support.stack import Stack, eventually, running_stack
from tests.support.store_setup import admin_rows, new, write

HERON = {"content": "The heron counts the kegs of the harbour at dawn."}


READS = (
    "/v1/memories/{id}",
    "/v1/memories?limit=5",
    "/v1/memories/{id}/history",
    "/v1/memories/{id}/provenance",
    "/v1/memories/{id}/subgraph",
    "/v1/impact?path=src/a.py",
    "/v1/graph/stats",
    "/v1/context?scopes=global",
    "/v1/export",
)


@pytest.fixture(scope="module")
def pair(test_run: TestRun) -> Iterator[ReplicatedPostgres]:
    with start_replicated_postgres(test_run) as made:
        yield made


async def found(stack: Stack, query: str, **headers: str) -> list[str]:
    """What the other gateway finds, which has seen no write pass."""
    reply = await stack.call("POST", "/v1/recall", {"query": query}, headers=headers)
    assert reply.status == 200, reply
    assert reply.body["degraded"] == []
    return [one["content"] for one in reply.body["memories"]]


async def test_a_read_sees_the_write_it_names_however_far_behind_the_replica_is(
    pair: ReplicatedPostgres, nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(replicas, "STATE_TTL_SECONDS", 0.05)
    # A busy machine does not make the primary answer in its place.
    monkeypatch.setattr(replicas, "QUERY_TIMEOUT_SECONDS", 30.0)
    read_url = SecretStr(pair.read_url)
    async with (
        running_stack(
            pair.database,
            nats_url,
            model_home(),
            database_replica_url=read_url,
            replica_max_lag=3600.0,
            recall_sparse="auto",
        ) as stack,
    ):
        # A replica that follows answers.
        reply = await stack.call("POST", f"{stack.urls['ingest']}/v1/remember", HERON)
        position = reply.headers["Reverie-Position"]
        assert parse_lsn(position)
        assert await found(stack, "who counts kegs", **{"Reverie-Position": position}) != []
        one = f"/v1/memories/{reply.body['id']}"
        await eventually(lambda: shown(stack, one))
        assert (await stack.get(one))["content"] == HERON["content"]

        # So it does for all that only reads.
        before = await by_replica(stack)
        for path in READS:
            url, key = stack.url + path.format(id=reply.body["id"]), f"Bearer {stack.key}"
            async with stack.http.get(url, headers={"Authorization": key}) as answer:
                assert answer.status == 200, (path, await answer.text())
                await answer.read()
        then = {"query": "who counts kegs", "as_of": "2099-01-01T00:00:00Z"}
        assert (await stack.post("/v1/recall", then))["degraded"] == []
        assert await by_replica(stack) > before + len(READS)

        # One that stands still does not have the write: without its position it is not found yet.
        pair.execute("select pg_wal_replay_pause()")
        owl = {"content": "The owl keeps the ledger of the lighthouse."}
        reply = await stack.call("POST", f"{stack.urls['ingest']}/v1/remember", owl)
        later = reply.headers["Reverie-Position"]
        assert later_lsn(position, later) == later
        assert owl["content"] not in await found(stack, "who keeps the ledger")
        assert (await stack.call("GET", f"/v1/memories/{reply.body['id']}")).status == 404
        # Named, it waits in vain, and the primary answers.
        named = {"Reverie-Position": later}
        assert owl["content"] in await found(stack, "who keeps the ledger", **named)
        # What passed this gateway need not be named, nor by who uses the client.
        wren = {"content": "The wren paints the buoys in autumn."}
        await stack.post("/v1/remember", wren)
        assert wren["content"] in await found(stack, "who paints the buoys")
        async with AsyncReverie(stack.url, stack.key_of()) as client:
            kept = await client.remember("The stork oils the hinges of the sluice.")
            assert (await client.get_memory(kept.id)).content.startswith("The stork")

        # It goes on: what was not there comes, by itself.
        pair.execute("select pg_wal_replay_resume()")
        await eventually(lambda: has(stack, "who keeps the ledger", owl["content"]))

        # Cut off from its primary it says nothing new, and is passed over.
        pair.follow("")
        rook = {"content": "The rook winds the clock of the customs house."}
        await stack.call("POST", f"{stack.urls['ingest']}/v1/remember", rook)
        await eventually(lambda: has(stack, "who winds the clock", rook["content"]))
        pair.follow(pair.primary)

        # Away, the primary answers; back, it is used again.
        pair.stop()
        assert owl["content"] in await found(stack, "who keeps the ledger")
        assert wren["content"] in await found(stack, "who paints the buoys", **named)
        pair.start()
        before = await by_replica(stack)
        await eventually(lambda: used_again(stack, before))
        bad = await stack.call(
            "POST", "/v1/recall", {"query": "x"}, headers={"Reverie-Position": "yesterday"}
        )
        assert bad.status == 422
        assert "Reverie-Position" in bad.body["detail"]


async def test_a_recall_index_of_a_replica_finds_a_write_it_names(
    pair: ReplicatedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pause in ("RELOAD_SECONDS", "RETRY_SECONDS", "LOAD_SHARE"):
        monkeypatch.setattr(recall_index_cache, pause, 0)
    monkeypatch.setattr(replicas, "QUERY_TIMEOUT_SECONDS", 30.0)
    answered = list[bool]()
    replica = ReplicaOptions(
        pair.read_url, wait_timeout=10.0, max_lag=3600.0, on_read=answered.append
    )
    async with open_engines(pair.database, replica=replica) as engines:
        # An index that is loaded from the primary does not answer for a replica.
        assert engines.store.db.replica is not None
        assert await eventually(engines.store.db.replica.is_usable)

        async def find(text: str) -> list[UUID]:
            """What a reader finds who names the last write."""
            position = parse_lsn(await engines.store.db.get_log_position())
            assert position is not None
            with require_position(position):
                assert await engines.holds_index()
                result = await recall(engines.indexed, engines.store.me, ask(text))
            return [hit.item.id for hit in result.hits]

        await write(engines.store, *(new(f"the pool of worker {n}") for n in range(20)))
        with require_position(parse_lsn(await engines.store.db.get_log_position()) or 0):
            await engines.load_index()
        for number in range(3):
            [memory] = await write(engines.store, new(f"the zebra{number} crosses"))
            assert await find(f"zebra{number}") == [memory]
            admin_rows(pair.database.admin_url, "delete from memory where id = %s", memory)
            assert await find(f"zebra{number}") == []
    assert all(answered)


async def test_no_read_waits_for_an_unresponsive_replica(
    database: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "STATE_TTL_SECONDS", 0.0)
    async with ChaosProxy("127.0.0.1", port_of(database.reader_url)) as proxy:
        spec = ReplicaOptions(at_port(database.reader_url, proxy.port))
        async with open_database(database.service_url, reader_size=2, replica=spec) as store:
            replica = store.replica
            assert replica is not None
            # One that is no replica stands for one that follows.
            assert await eventually(replica.is_usable)
            monkeypatch.setattr(replicas, "QUERY_TIMEOUT_SECONDS", 0.1)
            proxy.blackhole()
            assert not await replica.is_usable()
            # The connection is still being given up, which takes as long as one is waited for.
            assert replica.pool.busy == 1
            proxy.reset_connections()


async def by_replica(stack: Stack) -> float:
    """How many reads the replica has answered."""
    async with stack.http.get(f"{stack.url}/metrics") as answer:
        text = await answer.text()
    told = re.search(r'reverie_replica_reads_total\{server="replica"\} (\S+)', text)
    return float(told[1]) if told else 0.0


async def used_again(stack: Stack, before: float) -> bool:
    await found(stack, "who counts kegs")
    return await by_replica(stack) > before


async def shown(stack: Stack, path: str) -> bool:
    return (await stack.call("GET", path)).status == 200


async def has(stack: Stack, query: str, content: str) -> bool:
    return content in await found(stack, query)


def test_the_latest_write_of_a_key_counts_and_expires() -> None:
    headers = {"Authorization": "Bearer rv_one"}
    written = WritePositions(3600.0)
    written.record(headers, "0/2000000")
    with written.read_barrier(headers):
        assert replicas._required_position.get() == 0x2000000
    with written.read_barrier({**headers, "Reverie-Position": "1/0"}):
        assert replicas._required_position.get() == 1 << 32
    with written.read_barrier({"Authorization": "Bearer rv_other"}):
        assert replicas._required_position.get() == 0
    late = WritePositions(0.0)
    late.record(headers, "0/2000000")
    with late.read_barrier(headers):
        assert replicas._required_position.get() == 0
