"""A request and its response as plain values, whether a connection or this process made them."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import Protocol

from multidict import CIMultiDict
from yarl import URL

from reverie.domain.access.principals import Principal

AfterReplyJob = Callable[[], Awaitable[None]]


class AuditedRoute(Protocol):
    """The properties of a route that the audit log needs."""

    @property
    def name(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def delegates(self) -> bool: ...


async def iterate_once(body: bytes) -> AsyncIterator[bytes]:
    """A body in one chunk."""
    yield body


@dataclass
class IncomingRequest:
    """One request.

    `url` is relative. Names of `headers` ignore case. `content_length` is None if the length of
    the body is unknown. `remote` is the address of who connected, empty for this process. The
    dispatcher sets `route_pattern` and `path_values`; the route sets the fields below them.
    """

    method: str
    url: URL
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    content_length: int | None
    remote: str = ""
    route_pattern: str = "unmatched"
    path_values: Mapping[str, str] = field(default_factory=dict)
    authenticated: tuple[AuditedRoute, Principal] | None = None
    rate_limit_headers: Mapping[str, str] = field(default_factory=dict)
    problem_code: str | None = None
    after_reply_jobs: Sequence[AfterReplyJob] = ()


@dataclass
class OutgoingResponse:
    """A response: complete bytes, or chunks that are produced during sending.

    `endless` chunks continue until the client disconnects or the service stops.
    """

    status: int
    headers: CIMultiDict[str]
    body: bytes = b""
    chunks: AsyncGenerator[bytes, None] | None = None
    endless: bool = False


RequestHandler = Callable[[IncomingRequest], Awaitable[OutgoingResponse]]
