"""An open-loop load generator: requests leave at fixed times, whatever came back.

What measures must not take the time that it measures: one thread, sockets and epoll, nothing more.
How long an answer took is counted from the moment at which its request was due, so that a load that
comes late is not taken for a service that answers soon.
"""

from __future__ import annotations

import json
import random
import re
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from yarl import URL

WAITING = 4_000
"""Requests under way at once that the load itself bears."""
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
Make = Callable[[], bytes]
"""The next request, whole."""


@dataclass(frozen=True)
class Answer:
    """What a request to `path` got, and seconds from when it was due.

    0 as the status: the connection broke.
    """

    path: str
    due: float
    taken: float
    status: int
    head: bytes = b""
    body: bytes = b""

    @property
    def good(self) -> bool:
        """Whether what was asked for was done."""
        return 200 <= self.status < 300


@dataclass
class _Connection:
    socket: socket.socket
    path: str = ""
    due: float = 0.0
    unsent: bytes = b""
    got: bytes = b""


@dataclass
class Load:
    """Connections to one service, as many as are needed; `lateness`: seconds after it was due that
    each request was sent."""

    where: tuple[str, int]
    key: str
    lateness: list[float] = field(default_factory=list)
    _busy: dict[int, _Connection] = field(default_factory=dict)
    _free: list[_Connection] = field(default_factory=list)
    _ready: select.epoll = field(default_factory=select.epoll)

    def post(self, path: str, body: object) -> bytes:
        """A request as it goes over the wire."""
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self.where[0]}\r\n"
            f"Authorization: Bearer {self.key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        return head.encode() + data

    def send(self, request: bytes, due: float) -> None:
        """Starts one; its answer comes out of `answers`."""
        one = self._free.pop() if self._free else self._connected()
        one.due, one.got, one.unsent = due, b"", request
        one.path = request.split(b" ", 2)[1].decode()
        self._busy[one.socket.fileno()] = one
        self._write(one)
        self.lateness.append(time.perf_counter() - due)

    def answers(self, until: float) -> list[Answer]:
        """What was answered by then; returns as soon as anything was."""
        left = max(0.0, until - time.perf_counter())
        # epoll alone counts whole milliseconds.
        if not select.select([self._ready.fileno()], [], [], left)[0]:
            return []
        found = (self._look(fd, event) for fd, event in self._ready.poll(0))
        return [answer for answer in found if answer is not None]

    @property
    def under_way(self) -> int:
        """Requests that are not answered yet."""
        return len(self._busy)

    def close(self) -> None:
        """Closes all connections."""
        for one in (*self._busy.values(), *self._free):
            one.socket.close()
        self._ready.close()

    def _connected(self) -> _Connection:
        one = socket.socket()
        one.setblocking(False)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(BlockingIOError):
            one.connect(self.where)
        self._ready.register(one, select.EPOLLIN | select.EPOLLOUT)
        return _Connection(one)

    def _write(self, one: _Connection) -> None:
        try:
            one.unsent = one.unsent[one.socket.send(one.unsent) :]
        except BlockingIOError:
            return
        except OSError:
            # What broke is seen when it is read.
            one.unsent = b""

    def _look(self, fd: int, event: int) -> Answer | None:
        one = self._busy.get(fd)
        if one is None:
            self._forget(fd)
            return None
        if event & select.EPOLLOUT:
            self._write(one)
            if not one.unsent:
                self._ready.modify(fd, select.EPOLLIN)
        if not event & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            return None
        try:
            data = one.socket.recv(65_536)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        one.got += data
        return self._answer(fd, one) if data else self._broken(fd, one)

    def _answer(self, fd: int, one: _Connection) -> Answer | None:
        head, ended, body = one.got.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not ended or (length and len(body) < int(length[1])):
            return None
        self._free.append(self._busy.pop(fd))
        taken = time.perf_counter() - one.due
        return Answer(one.path, one.due, taken, int(head[9:12]), head, body)

    def _broken(self, fd: int, one: _Connection) -> Answer:
        del self._busy[fd]
        self._ready.unregister(fd)
        one.socket.close()
        return Answer(one.path, one.due, time.perf_counter() - one.due, 0)

    def _forget(self, fd: int) -> None:
        """One that nobody waits for: the service hung up."""
        for one in [one for one in self._free if one.socket.fileno() == fd]:
            self._free.remove(one)
            self._ready.unregister(fd)
            one.socket.close()


@contextmanager
def load_on(url: str, key: str) -> Iterator[Load]:
    """A load on the service at that address."""
    where = URL(url)
    load = Load((str(where.host), int(where.port or 80)), key)
    try:
        yield load
    finally:
        load.close()


def alone(load: Load, make: Make, count: int, pause: float) -> list[Answer]:
    """One at a time, each `pause` seconds at the mean after the answer to the last."""
    found: list[Answer] = []
    while len(found) < count:
        due = time.perf_counter() + random.uniform(0.5, 1.5) * pause
        _wait(load, due, found)
        load.send(make(), due)
        while load.under_way:
            found += load.answers(due + 60.0)
    return found


def together(load: Load, make: Make, clients: int, seconds: float) -> list[Answer]:
    """As fast as they are answered, `clients` at a time."""
    found: list[Answer] = []
    until = time.perf_counter() + seconds
    while (now := time.perf_counter()) < until or load.under_way:
        while now < until and load.under_way < clients:
            load.send(make(), time.perf_counter())
        found += load.answers(now + 60.0)
    return found


def flood(load: Load, make: Make, rate: float, seconds: float) -> list[Answer]:
    """At random moments (a Poisson process), `rate` a second, whatever is answered."""
    found: list[Answer] = []
    due = time.perf_counter()
    until = due + seconds
    while due < until:
        due += random.expovariate(rate)
        _wait(load, due, found)
        if load.under_way < WAITING:
            load.send(make(), due)
    while load.under_way:
        found += load.answers(time.perf_counter() + 60.0)
    return found


def _wait(load: Load, due: float, found: list[Answer]) -> None:
    while True:
        found += load.answers(due)
        if time.perf_counter() >= due:
            return
