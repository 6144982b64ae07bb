"""HTTP/1.1 over asyncio, by h11: small, so that the client installs and is imported quickly.

Connections are kept and used again. There are no redirects, proxies, cookies or compression.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import quote, urlsplit

import h11

from reverie.contracts.tls import create_tls_context

CONNECT_TIMEOUT = 5.0
_MAX_CONNECTIONS = 100
_MAX_IDLE_SECONDS = 15.0
_PIECE = 64 * 1024
_URL_CHARACTERS = "%/?&=:@!$'(),;*+~#[]"
"""What stays as it is in an address, beside letters and digits."""


class ConnectionBroken(Exception):
    """The server cannot be reached, or the connection broke before the answer was complete."""


class AnswerHeaders(Mapping[str, str]):
    """Header fields by name, in any case; of several with a name, the last."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._fields = {name.decode().lower(): value.decode("latin-1") for name, value in pairs}

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


@dataclass(frozen=True)
class IncomingAnswer:
    """The head of an answer, and the pieces of its body as they come."""

    status: int
    headers: AnswerHeaders
    pieces: AsyncIterator[bytes]

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([piece async for piece in self.pieces])


@dataclass
class KeptConnection:
    """One connection to the server. Each wait for data takes at most `read_timeout` seconds."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    protocol: h11.Connection = field(default_factory=lambda: h11.Connection(h11.CLIENT))
    used_at: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        is_recent = time.monotonic() - self.used_at < _MAX_IDLE_SECONDS
        return is_recent and not self.reader.at_eof() and not self.writer.is_closing()

    async def send(self, request: h11.Request, body: bytes | IO[bytes] | None) -> None:
        """Sends a request; a file is read piece by piece."""
        await self._write(request)
        if isinstance(body, bytes):
            await self._write(h11.Data(data=body))
        elif body is not None:
            while piece := await asyncio.to_thread(body.read, _PIECE):
                await self._write(h11.Data(data=piece))
        await self._write(h11.EndOfMessage())

    async def receive(self, read_timeout: float | None) -> IncomingAnswer:
        """The head of the answer."""
        while isinstance(head := await self._next_event(read_timeout), h11.InformationalResponse):
            pass
        if not isinstance(head, h11.Response):
            raise ConnectionBroken("the connection was closed before the answer")
        return IncomingAnswer(
            head.status_code, AnswerHeaders(head.headers), self._pieces(read_timeout)
        )

    def finish(self) -> bool:
        """Whether the exchange is complete, so that the connection can be used again."""
        if self.protocol.our_state is self.protocol.their_state is h11.DONE:
            self.protocol.start_next_cycle()
            self.used_at = time.monotonic()
            return True
        return False

    async def _write(self, event: Any) -> None:
        self.writer.write(self.protocol.send(event) or b"")
        await self.writer.drain()

    async def _pieces(self, read_timeout: float | None) -> AsyncIterator[bytes]:
        while isinstance(event := await self._next_event(read_timeout), h11.Data):
            yield bytes(event.data)

    async def _next_event(self, read_timeout: float | None) -> Any:
        while (event := self.protocol.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(read_timeout):
                self.protocol.receive_data(await self.reader.read(_PIECE))
        return event


class KeptConnections:
    """Connections to the server of one address."""

    def __init__(self, url: str, headers: Mapping[str, str], ca: Any = None) -> None:
        self._url = urlsplit(url)
        self._ca = ca
        self._headers = {"Host": self._url.netloc.rpartition("@")[2], **headers}
        self._idle: list[KeptConnection] = []
        self._slots = asyncio.Semaphore(_MAX_CONNECTIONS)

    @asynccontextmanager
    async def exchange(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | IO[bytes] | None = None,
        *,
        read_timeout: float | None = None,
    ) -> AsyncIterator[IncomingAnswer]:
        """Sends a request; the answer is read within the block. Raises `ConnectionBroken`."""
        request = h11.Request(
            method=method,
            target=quote(self._url.path.rstrip("/") + path, safe=_URL_CHARACTERS),
            headers=_encode_headers({**self._headers, **headers, **_framing(method, body)}),
        )
        async with self._slots:
            connection = None
            try:
                connection = await self._take()
                sending = asyncio.create_task(connection.send(request, body))
                try:
                    yield await _answer_of(connection, sending, read_timeout)
                finally:
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
            except (OSError, h11.RemoteProtocolError) as error:
                raise ConnectionBroken(str(error) or type(error).__name__) from error
            finally:
                self._give_back(connection)

    async def close(self) -> None:
        """Closes what is not in use."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.writer.close()
        for connection in idle:
            with suppress(OSError):
                await connection.writer.wait_closed()

    async def _take(self) -> KeptConnection:
        while self._idle:
            if (idle := self._idle.pop()).is_open:
                return idle
            idle.writer.close()
        host, is_tls = self._url.hostname, self._url.scheme == "https"
        if not host or self._url.scheme not in {"http", "https"}:
            raise ConnectionBroken("this is no address of a server")
        async with asyncio.timeout(CONNECT_TIMEOUT):
            reader, writer = await asyncio.open_connection(
                host,
                self._url.port or (443 if is_tls else 80),
                ssl=create_tls_context(self._ca) if is_tls else None,
                happy_eyeballs_delay=0.25,
            )
        return KeptConnection(reader, writer)

    def _give_back(self, connection: KeptConnection | None) -> None:
        if connection is None:
            return
        if connection.finish():
            self._idle.append(connection)
        else:
            connection.writer.close()


async def _answer_of(
    connection: KeptConnection, sending: asyncio.Task[None], read_timeout: float | None
) -> IncomingAnswer:
    """The answer, which a server may give before it has taken the whole body."""
    receiving = asyncio.create_task(connection.receive(read_timeout))
    try:
        done, _ = await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
        if sending in done and receiving not in done:
            # The body may be what fails, as a file that cannot be read; a broken pipe is no reason
            # to miss an answer that came before it.
            failure = sending.exception()
            if failure is not None and not isinstance(failure, ConnectionError):
                raise failure
        return await receiving
    finally:
        receiving.cancel()


def _framing(method: str, body: bytes | IO[bytes] | None) -> dict[str, str]:
    """The header that says where the body ends."""
    if isinstance(body, bytes):
        return {"Content-Length": str(len(body))}
    if body is not None:
        return {"Transfer-Encoding": "chunked"}
    return {} if method in {"GET", "HEAD"} else {"Content-Length": "0"}


def _encode_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


async def split_lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a stream, as soon as each is complete."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest
