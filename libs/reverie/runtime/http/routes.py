"""The description of a route: what it takes, what it gives, and who may use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from reverie.runtime.http.calls import RouteHandler
from reverie.runtime.http.exchange import IncomingRequest

SignedBodyReader = Callable[[IncomingRequest, AsyncIterator[bytes]], Awaitable[bytes]]
"""Returns the body that the chunks make; raises `Unauthenticated` if it is not signed."""


@dataclass(frozen=True)
class Route:
    """One HTTP operation: its input, output and access rules. The OpenAPI document is built from
    it.

    `path` has its variables in braces. `public`: no key is needed. `streaming`: the body or the
    answer is streamed, without the request time limit; `stream_limit` bounds the body (bytes).

    `body_limit`: the maximum bytes of a whole body, if it differs from the general limit, and
    `body_limit_setting` its setting. `supports_etag`: the route supports versions by ETag.
    `rechecks_secrets`: a write is refused as `OutdatedSecrets` if the secrets redacted from it
    changed.

    `request_media_types`: media types of a body without a model. `response_examples`: media types
    of further answers, each with an example. `count_new_memories`: counts the memories that a body
    creates. `delegates`: it makes calls of its own with the same key; limits and the audit log
    count these.

    `read_signed_body`: reads the body of a public call and checks its signature. The body of
    another public call is not read.

    `read_only`: it changes nothing, whatever its method. `returns_secret`: its answer contains a
    secret, so it is stored encrypted.
    """

    method: str
    path: str
    handler: RouteHandler
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    response: type[BaseModel] | None = None
    status: int = 200
    public: bool = False
    summary: str = ""
    streaming: bool = False
    stream_limit: int = 0
    body_limit: int = 0
    body_limit_setting: str = "body_limit"
    supports_etag: bool = False
    rechecks_secrets: bool = False
    request_media_types: tuple[str, ...] = ()
    response_examples: Mapping[str, str] = field(default_factory=dict)
    count_new_memories: Callable[[Any], int] | None = None
    delegates: bool = False
    read_only: bool = False
    returns_secret: bool = False
    read_signed_body: SignedBodyReader | None = None

    @property
    def name(self) -> str:
        """The display name: `POST /v1/remember`."""
        return f"{self.method} {self.path}"
