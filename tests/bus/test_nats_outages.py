"""The bus during stops, crashes, data loss and network faults of NATS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from nats.aio.client import Client

from reverie.bus.consumer import consume
from reverie.bus.interface import Message
from reverie.bus.nats_bus import NatsBus, connect
from reverie.bus.outbox_relay import relay
from reverie.bus.streams import CONSUMERS, INGEST_ENRICH, STREAMS, ensure_streams
from reverie.contracts.events import MEMORY_STREAM
from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.testing.chaos_proxy import ChaosProxy
from reverie.testing.servers import NatsServer
from tests.bus.bus_cases import Inbox, Rows, event, running
from tests.support.log_capture import capture_logs

ENRICH = replace(INGEST_ENRICH, ack_wait=2.0, backoff=(0.1,))


async def stop(server: NatsServer) -> None:
    await asyncio.to_thread(server.stop)


async def start(server: NatsServer) -> None:
    await asyncio.to_thread(server.start)


async def kill(server: NatsServer) -> None:
    await asyncio.to_thread(server.kill)


def port_of(server: NatsServer) -> int:
    port = urlsplit(server.url).port
    assert port is not None
    return port


def through(proxy: ChaosProxy, server: NatsServer) -> str:
    return server.url.replace(f":{port_of(server)}", f":{proxy.port}")


async def lost(bus: NatsBus) -> None:
    async with asyncio.timeout(60):
        while True:
            if not bus.connected:
                return
            await asyncio.sleep(0.01)


@asynccontextmanager
async def client(url: str) -> AsyncIterator[Client]:
    raw = Client()
    await raw.connect(url)
    yield raw
    await raw.close()


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[NatsBus]:
    await ensure_streams(nats_server.url, consumers=[*CONSUMERS, ENRICH])
    async with connect(nats_server.url, "outages") as bus:
        assert await bus.wait_connected(30)
        yield bus


async def test_publishing_fails_while_nats_is_stopped_and_nothing_is_lost_afterwards(
    nats_server: NatsServer, bus: NatsBus
) -> None:
    inbox = Inbox()
    for n in range(20):
        await bus.publish(event(payload=str(n)))
    await stop(nats_server)
    await lost(bus)
    with pytest.raises(Unavailable):
        await bus.publish(event(payload="too late"))
    async with running(consume(bus, ENRICH, inbox)):
        await start(nats_server)
        got = [int((await inbox.next()).data) for _ in range(20)]
        assert await bus.wait_connected(30)
        await bus.publish(event(payload="20"))
        got.append(int((await inbox.next()).data))
    assert sorted(got) == list(range(21))


async def test_acknowledged_messages_survive_a_kill_of_nats(
    nats_server: NatsServer, bus: NatsBus
) -> None:
    inbox = Inbox()
    async with running(consume(bus, ENRICH, inbox, concurrency=2)):
        for n in range(30):
            await bus.publish(event(payload=str(n)))
        await kill(nats_server)
        await start(nats_server)
        got: set[int] = set()
        while got != set(range(30)):
            got.add(int((await inbox.next()).data))


async def test_a_pending_publish_fails_as_soon_as_the_connection_dies(
    nats_server: NatsServer, bus: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.bus.nats_bus.DEADLINE", 3600)
    async with (
        ChaosProxy("127.0.0.1", port_of(nats_server)) as proxy,
        connect(through(proxy, nats_server), "open", heartbeat=3600) as torn,
    ):
        assert await torn.wait_connected(30)
        proxy.blackhole()
        publishing = asyncio.create_task(torn.publish(event()))
        await asyncio.wait({publishing}, timeout=0.1)
        assert not publishing.done()
        proxy.reset_connections()
        with pytest.raises(Unavailable):
            async with asyncio.timeout(60):
                await publishing


async def test_work_that_outlives_a_restart_of_nats_is_acknowledged_and_not_repeated(
    nats_server: NatsServer, bus: NatsBus
) -> None:
    begun, finish = Inbox(), asyncio.Event()
    patient = replace(INGEST_ENRICH, ack_wait=30.0)
    await ensure_streams(nats_server.url)

    async def work(message: Message) -> None:
        await begun(message)
        await finish.wait()

    await bus.publish(event())
    async with running(consume(bus, patient, work)):
        await begun.next()
        await stop(nats_server)
        await lost(bus)
        finish.set()
        await start(nats_server)
        async with asyncio.timeout(60):
            while True:
                if await bus.wait_connected(30) and await bus.lag(patient) == 0:
                    break
                await asyncio.sleep(0.05)
    assert begun.empty


async def test_the_relay_waits_for_nats_and_then_drains_the_backlog(
    nats_server: NatsServer, bus: NatsBus
) -> None:
    inbox, outbox = Inbox(), Rows(*[event(payload=str(n)) for n in range(50)])
    await stop(nats_server)
    await lost(bus)
    async with (
        running(relay(bus, outbox, interval=0.05, grace=0.0, batch=20)),
        running(consume(bus, ENRICH, inbox)),
    ):
        await asyncio.sleep(0.2)
        assert outbox.claims == 0  # no rows are locked for a bus that is away
        await start(nats_server)
        got = {int((await inbox.next()).data) for _ in range(50)}
    assert got == set(range(50))
    assert outbox.rows == {}


async def test_a_relay_survives_a_failing_store(nats_server: NatsServer, bus: NatsBus) -> None:
    inbox, outbox = Inbox(), Rows(event(payload="at last"))
    failures = 2
    claim = outbox.claim

    @asynccontextmanager
    async def fails_at_first(limit: int, older_than: float) -> AsyncIterator[object]:
        nonlocal failures
        if failures:
            failures -= 1
            raise ConnectionError("no Postgres")
        async with claim(limit, older_than) as claimed:
            yield claimed

    outbox.claim = fails_at_first  # type: ignore[method-assign,assignment]
    async with (
        running(relay(bus, outbox, interval=0.01, grace=0.0)),
        running(consume(bus, ENRICH, inbox)),
    ):
        assert (await inbox.next()).data == b"at last"


async def test_a_bus_starts_without_nats_and_connects_later(nats_server: NatsServer) -> None:
    inbox = Inbox()
    await stop(nats_server)
    async with connect(nats_server.url, "early") as bus:
        assert not bus.connected
        with pytest.raises(Unavailable):
            await bus.publish(event())
        with pytest.raises(Unavailable):
            await bus.lag(ENRICH)
        async with running(consume(bus, ENRICH, inbox)):
            await start(nats_server)
            assert await bus.wait_connected(20)
            async with asyncio.timeout(60):
                while True:
                    try:
                        await bus.publish(event())
                        break
                    except Unavailable:
                        await asyncio.sleep(0.05)
            assert (await inbox.next()).data == b"{}"


async def test_a_consumer_recreates_a_lost_stream_and_continues(
    nats_server: NatsServer, bus: NatsBus
) -> None:
    inbox = Inbox()
    async with running(consume(bus, ENRICH, inbox)):
        await bus.publish(event(payload="before"))
        assert (await inbox.next()).data == b"before"
        async with client(nats_server.url) as raw:
            await raw.jetstream().delete_stream(MEMORY_STREAM)
        with pytest.raises(Unavailable):
            await bus.publish(event())
        async with asyncio.timeout(60):
            while True:
                try:
                    await bus.publish(event(payload="after"))
                    break
                except Unavailable:
                    await asyncio.sleep(0.1)
        assert (await inbox.next()).data == b"after"


async def test_a_network_that_resets_connections_is_survived(
    nats_server: NatsServer, bus: NatsBus
) -> None:
    inbox = Inbox()
    async with ChaosProxy("127.0.0.1", port_of(nats_server)) as proxy:
        url = through(proxy, nats_server)
        async with connect(url, "torn") as torn, running(consume(torn, ENRICH, inbox)):
            await bus.publish(event(payload="one"))
            assert (await inbox.next()).data == b"one"
            proxy.reset_connections()
            await lost(torn)
            with pytest.raises(Unavailable):
                await torn.publish(event())
            await bus.publish(event(payload="two"))
            proxy.restore()
            message = await inbox.next()
            while message.data == b"one":  # its acknowledgement may have been cut off
                message = await inbox.next()
            assert message.data == b"two"


async def test_a_server_that_hangs_counts_as_gone_until_it_answers(
    nats_server: NatsServer, bus: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.bus.nats_bus.DEADLINE", 0.3)
    async with (
        ChaosProxy("127.0.0.1", port_of(nats_server)) as proxy,
        connect(through(proxy, nats_server), "hung", heartbeat=0.1) as hung,
    ):
        assert await hung.wait_connected(30)
        proxy.blackhole()
        with pytest.raises(Unavailable):
            await hung.publish(event())
        await lost(hung)
        proxy.restore()
        assert await hung.wait_connected(30)
        await hung.publish(event())


async def test_streams_can_be_ensured_again_while_in_use(
    nats_server: NatsServer, bus: NatsBus
) -> None:
    inbox = Inbox()
    async with running(consume(bus, ENRICH, inbox)):
        await bus.publish(event(payload="one"))
        assert (await inbox.next()).data == b"one"
        await asyncio.gather(*(ensure_streams(nats_server.url) for _ in range(3)))
        await bus.publish(event(payload="two"))
        assert (await inbox.next()).data == b"two"
    async with client(nats_server.url) as raw:
        js = raw.jetstream()
        assert {s.config.name for s in await js.streams_info()} == {s.name for s in STREAMS}
        info = await js.consumer_info(MEMORY_STREAM, INGEST_ENRICH.name)
        assert info.config.ack_wait == INGEST_ENRICH.ack_wait


async def test_streams_need_a_server_and_no_more_replicas_than_servers(
    nats_server: NatsServer,
) -> None:
    with pytest.raises(Misconfigured, match="replicas"):
        await ensure_streams(nats_server.url, replicas=3)
    await stop(nats_server)
    with pytest.raises(Unavailable):
        await ensure_streams(nats_server.url)


@pytest.mark.parametrize("url", ["", "localhost:4222", "http://localhost:4222", "nats://"])
async def test_an_invalid_address_is_an_invalid_setting(url: str) -> None:
    with pytest.raises(Misconfigured):
        connect(url, "nobody")
    with pytest.raises(Misconfigured):
        await ensure_streams(url)


async def test_a_wrong_password_is_retried_and_never_logged(nats_server: NatsServer) -> None:
    wrong = f"nats://reverie:hunter2@127.0.0.1:{port_of(nats_server)}"
    with capture_logs() as logs:
        async with connect(wrong, "stranger") as bus, asyncio.timeout(60):
            while True:
                if "Authorization Violation" in str(logs):
                    break
                await asyncio.sleep(0.05)
            with pytest.raises(Unavailable):
                await bus.publish(event())
    assert {entry["event"] for entry in logs} == {"bus_unreachable"}
    # Once for each reason (the server may hang up before its refusal is read), not each try.
    assert len(logs) == len({entry["error"] for entry in logs})
    assert "hunter2" not in str(logs)


async def test_a_closed_bus_leaves_no_task_and_no_connection(nats_server: NatsServer) -> None:
    before = asyncio.all_tasks()
    async with connect(nats_server.url, "short") as bus, running(consume(bus, ENRICH, Inbox())):
        assert await bus.wait_connected(30)
    await asyncio.sleep(0)
    assert not {t for t in asyncio.all_tasks() - before if not t.done()}
    assert not bus.connected
