"""Each fault of the chaos proxy does what its name says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from reverie.testing.chaos_proxy import ChaosProxy

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1024):
            writer.write(data)
            await writer.drain()
    writer.close()


@pytest.fixture
async def echo_port() -> AsyncIterator[int]:
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
async def proxy(echo_port: int) -> AsyncIterator[ChaosProxy]:
    async with ChaosProxy("127.0.0.1", echo_port) as proxy:
        yield proxy


@pytest.fixture
async def client(proxy: ChaosProxy) -> AsyncIterator[Pair]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    yield reader, writer
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _exchange(pair: Pair, text: bytes) -> bytes:
    pair[1].write(text)
    return await pair[0].readexactly(len(text))


async def test_without_a_fault_everything_is_passed_on(client: Pair) -> None:
    payload = bytes(range(256)) * 2000
    assert await _exchange(client, payload) == payload


async def test_a_cut_resets_open_connections(proxy: ChaosProxy, client: Pair) -> None:
    await _exchange(client, b"hello")
    proxy.reset_connections()
    with pytest.raises(ConnectionResetError):
        await client[0].readexactly(1)


async def test_a_cut_refuses_new_connections_until_it_is_restored(proxy: ChaosProxy) -> None:
    proxy.reset_connections()
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        await _exchange(await asyncio.open_connection("127.0.0.1", proxy.port), b"hello")
    proxy.restore()
    pair = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await _exchange(pair, b"hello") == b"hello"
    pair[1].close()


async def test_a_black_hole_holds_data_back_until_it_is_restored(
    proxy: ChaosProxy, client: Pair
) -> None:
    proxy.blackhole()
    answer = asyncio.create_task(_exchange(client, b"hello"))
    done, _ = await asyncio.wait({answer}, timeout=0.1)
    assert not done
    proxy.restore()
    assert await answer == b"hello"


async def test_a_delay_holds_data_back(proxy: ChaosProxy, client: Pair) -> None:
    loop = asyncio.get_running_loop()
    proxy.delay(0.1)
    before = loop.time()
    assert await _exchange(client, b"hello") == b"hello"
    assert loop.time() - before >= 0.2  # once each way; a lower bound, so no load can break it


async def test_a_throttle_limits_the_rate(proxy: ChaosProxy, client: Pair) -> None:
    loop = asyncio.get_running_loop()
    proxy.throttle(10_000)
    before = loop.time()
    assert await _exchange(client, b"x" * 2_000) == b"x" * 2_000
    assert loop.time() - before >= 0.1


async def test_a_half_closed_server_side_still_takes_data(proxy: ChaosProxy) -> None:
    taken = asyncio.Queue[bytes]()

    async def sink(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1024):
            taken.put_nowait(data)
        writer.close()

    server = await asyncio.start_server(sink, "127.0.0.1", 0)
    async with server, ChaosProxy("127.0.0.1", server.sockets[0].getsockname()[1]) as half:
        reader, writer = await asyncio.open_connection("127.0.0.1", half.port)
        writer.write(b"before")
        assert await taken.get() == b"before"
        half.half_close()
        assert await reader.read() == b""
        writer.write(b"after")
        assert await taken.get() == b"after"
        writer.close()


async def test_a_client_that_resets_takes_the_server_side_with_it() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def sink(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun.set()
        with suppress(OSError):
            await reader.read()
        ended.set()
        writer.close()

    server = await asyncio.start_server(sink, "127.0.0.1", 0)
    async with server, ChaosProxy("127.0.0.1", server.sockets[0].getsockname()[1]) as proxy:
        _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        await begun.wait()
        writer.transport.abort()
        await ended.wait()
        assert proxy.accepted == 1


async def test_leaving_the_block_leaves_no_task(echo_port: int) -> None:
    before = asyncio.all_tasks()
    async with ChaosProxy("127.0.0.1", echo_port) as proxy:
        pairs = [await asyncio.open_connection("127.0.0.1", proxy.port) for _ in range(3)]
        for pair in pairs:
            await _exchange(pair, b"hello")
    mine = {t for t in asyncio.all_tasks() - before if "ChaosProxy" in repr(t)}
    assert mine == set()
    for _, writer in pairs:
        writer.close()


async def test_a_missing_target_ends_the_connection() -> None:
    async with ChaosProxy("127.0.0.1", 1) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        with suppress(OSError):
            assert await reader.read() == b""
        writer.close()
