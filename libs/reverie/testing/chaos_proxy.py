"""A TCP proxy that injects delays, resets and stalls for tests."""

from __future__ import annotations

import asyncio
import struct
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from socket import SO_LINGER, SOL_SOCKET
from typing import Final, Self

CHUNK_BYTES: Final = 64 * 1024


class ChaosProxy:
    """A proxy between a client and a server on 127.0.0.1.

    `async with ChaosProxy(host, port) as proxy:` clients connect to `proxy.port`. Faults apply to
    open and new connections alike until `restore()`; leaving the block ends every connection.
    """

    def __init__(self, target_host: str, target_port: int):
        self._target = (target_host, target_port)
        self._server: asyncio.Server | None = None
        self._links: dict[asyncio.Task[None], tuple[StreamWriter, ...]] = {}
        self._half_closed: set[StreamWriter] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self._refusing = False
        self._delay = 0.0
        self._rate = 0
        self.port = 0
        self.accepted = 0
        """Connections accepted so far."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        self.reset_connections()
        if self._links:
            await asyncio.wait(self._links)
        if self._server is not None:
            await self._server.wait_closed()

    def redirect(self, host: str, port: int) -> None:
        """Lead new connections to another server, as an address that moves does."""
        self._target = (host, port)

    def reset_connections(self) -> None:
        """Reset every connection, and every new one as soon as it is made."""
        self._refusing = True
        self._reset_all()

    def restore(self) -> None:
        """End every fault; connections that were reset or half closed stay so."""
        self._refusing = False
        self._delay = 0.0
        self._rate = 0
        self._passing.set()

    def delay(self, seconds: float) -> None:
        """Delays every piece of data by `seconds`, in both directions."""
        self._delay = seconds

    def throttle(self, bytes_per_s: int) -> None:
        """Let at most `bytes_per_s` through, for each connection and direction."""
        self._rate = bytes_per_s

    def blackhole(self) -> None:
        """Keeps connections open and forwards nothing.

        Data received so far is sent on `restore()`.
        """
        self._passing.clear()

    def half_close(self) -> None:
        """Signals end of stream to every client, and continues to read its data."""
        for to_client, _ in self._pairs():
            self._half_closed.add(to_client)
            with suppress(OSError):
                to_client.write_eof()

    def _pairs(self) -> list[tuple[StreamWriter, StreamWriter]]:
        return [(link[0], link[1]) for link in self._links.values() if len(link) == 2]

    def _reset_all(self) -> None:
        for task, writers in self._links.items():
            for writer in writers:
                _reset(writer)
            task.cancel()

    async def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        if self._refusing or task is None:
            _reset(writer)
            return
        self._links[task] = (writer,)
        try:
            await self._link(task, reader, writer)
        # A task of the streams library that ends cancelled is reported as an error by it.
        except asyncio.CancelledError:
            return
        finally:
            for end in self._links.pop(task):
                _reset(end)
                self._half_closed.discard(end)

    async def _link(
        self, task: asyncio.Task[None], reader: StreamReader, writer: StreamWriter
    ) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            self._links[task] = (writer, far_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, far_writer))
                group.create_task(self._pump(far_reader, writer))
        except* OSError:
            pass  # one end is closed: the caller resets the other

    async def _pump(self, reader: StreamReader, writer: StreamWriter) -> None:
        while data := await reader.read(self._rate // 10 + 1 if self._rate else CHUNK_BYTES):
            await asyncio.sleep(self._delay + (len(data) / self._rate if self._rate else 0))
            await self._passing.wait()
            if writer not in self._half_closed:
                writer.write(data)
                await writer.drain()
        await self._passing.wait()
        writer.write_eof()


def _reset(writer: StreamWriter) -> None:
    """Close without a farewell: a reset, not the orderly end that an abort alone would send."""
    linger = struct.pack("ii", 1, 0)
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, linger)
    writer.transport.abort()
