"""Rejects requests on raw socket bytes while their route is overloaded."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from aiohttp import web
from aiohttp.helpers import rfc822_formatted_time

from reverie.contracts.problems import PROBLEM_TITLES
from reverie.domain.core.errors import Overloaded
from reverie.runtime.limits.admission import AdmissionController

_END_OF_HEADERS = b"\r\n\r\n"
_LENGTH = re.compile(rb"(?i)\r\ncontent-length(?::[ \t]*([0-9]{1,9})[ \t]*(?=\r\n))?")
_UNUSUAL = re.compile(
    rb"(?i)\r\n(?:(?:transfer-encoding|expect|upgrade)[ \t]*:"
    rb"|connection[ \t]*:(?![ \t]*keep-alive[ \t]*\r\n))"
)
_MAX_LINE_LENGTH = 200
_MAX_ENTRIES = 512
_UNKNOWN = -1
_HEADERS = {"Content-Type": "application/problem+json"}

RejectionCounter = Callable[[], None]
"""Counts one refusal."""


def plain_request_size(data: bytes) -> int | None:
    """Bytes of the plain request that begins here, with its body; None where that takes reading."""
    end = data.find(_END_OF_HEADERS)
    if end < 0 or _UNUSUAL.search(data, 0, end + 2):
        return None
    lengths = _LENGTH.findall(data, 0, end + 2)
    if len(lengths) > 1 or b"" in lengths:
        return None
    return end + len(_END_OF_HEADERS) + (int(lengths[0]) if lengths else 0)


class RejectionCache:
    """The doors of a process, by the first lines of requests that they refused."""

    def __init__(self, longest: int) -> None:
        self._max_size = longest
        self._entries: dict[bytes, tuple[AdmissionController, RejectionCounter]] = {}

    def remember_rejection(
        self, request: web.Request, door: AdmissionController, counted: RejectionCounter
    ) -> None:
        """Takes note of a request that its door refused."""
        line = f"{request.method} {request.raw_path}".encode()
        if len(line) > _MAX_LINE_LENGTH:
            return
        if len(self._entries) >= _MAX_ENTRIES:
            self._entries.clear()
        self._entries[line] = (door, counted)

    def find_rejection(self, data: bytes, size: int) -> bytes | None:
        """The whole answer to a request of that size that begins with `data`; None: let it in."""
        line, is_http, _ = data[: _MAX_LINE_LENGTH + 11].partition(b" HTTP/1.1\r\n")
        door, counted = self._entries.get(line, (None, None))
        if not is_http or door is None or counted is None or size > self._max_size:
            return None
        try:
            door.check()
        except Overloaded as error:
            counted()
            return _response(
                error.what, error.running, error.waiting, retry_after_seconds(error), _now()
            )
        return None


class EarlyRejectionHandler(web.RequestHandler):
    """A connection whose requests are looked at before they are read.

    `spoke`: a whole head of a request has come over it.
    `_owed`: bytes of a body that are yet to come; below 0: where requests begin is not known.
    `_answer`: what a request gets whose body nobody reads, once that is over.
    """

    __slots__ = ("_answer", "_owed", "spoke", "turnstile")

    def __init__(self, *given: Any, turnstile: RejectionCache | None = None, **more: Any) -> None:
        super().__init__(*given, **more)
        self.turnstile = turnstile
        self.spoke = False
        self._owed = 0
        self._answer: bytes | None = None

    def data_received(self, data: bytes) -> None:
        """Answers what is refused; all else is read."""
        if self._answer is not None:
            data = self._skip_body(data)
            if not data:
                return
        if not self._reject_early(data):
            super().data_received(data)

    def _reject_early(self, data: bytes) -> bool:
        """Keeps count of where requests begin; whether one did that need not be read."""
        if self._owed > 0:
            self._owed -= len(data)
            return False
        if self._owed < 0 or not data:
            return False
        size = plain_request_size(data)
        self._owed = _UNKNOWN if size is None else size - len(data)
        if size is None or self._owed < 0 or self.turnstile is None or not self._is_idle():
            return False
        self._answer = self.turnstile.find_rejection(data, size)
        if self._answer is None:
            return False
        self.spoke = True
        self._skip_body(b"")
        return True

    def _is_idle(self) -> bool:
        """Whether the next answer on this connection is that to the next request."""
        waits = self._waiter is not None and not self._waiter.done()
        return waits and not (self._paused or self._upgraded or self._payload_parser)

    def _skip_body(self, data: bytes) -> bytes:
        """What comes after a body that nobody reads; answers at its end."""
        rest = data[self._owed :]
        self._owed = max(0, self._owed - len(data))
        if self._owed == 0 and self._answer is not None and self.transport is not None:
            self.transport.write(self._answer)
            self._answer = None
            self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        return rest


def retry_after_seconds(error: Overloaded) -> int:
    """Whole seconds after which to try again."""
    return max(1, math.ceil(error.retry_after))


def overload_problem(error: Overloaded, trace: str | None) -> tuple[bytes, dict[str, str]]:
    """The problem document that refuses, and its headers.

    Made for little: nothing in it is of the request, so there is nothing to redact.
    """
    document: dict[str, Any] = {
        "type": f"urn:reverie:problem:{error.code}",
        "title": PROBLEM_TITLES[error.code],
        "status": 503,
        "detail": str(error),
        "code": error.code,
        "trace_id": trace,
    }
    return json.dumps(document).encode(), _HEADERS | {
        "Retry-After": str(retry_after_seconds(error))
    }


def _now() -> str:
    return rfc822_formatted_time()


@lru_cache(256)
def _response(what: str, running: int, waiting: int, after: int, date: str) -> bytes:
    body, headers = overload_problem(Overloaded(what, running, waiting, after), None)
    lines = headers | {
        "Content-Length": str(len(body)),
        "Date": date,
        "Server": "reverie",
        "X-Content-Type-Options": "nosniff",
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 503 Service Unavailable\r\n{head}\r\n".encode() + body
