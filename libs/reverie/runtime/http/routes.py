"""The description of a route: what it takes, what it gives, and who may use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from reverie.runtime.http.calls import RouteHandler


@dataclass(frozen=True)
class Route:
    """One call: what it takes, what it gives, who may use it. OpenAPI is made from this.

    `path` has its variables in braces. `public`: no key at all. `streaming`: the body is taken,
    or the answer made, piece by piece, without the time limit of requests; `stream_limit` bounds
    the body.
    `body_limit`: bytes of a whole body, where they are not those of all calls, and the setting
    they are. `supports_etag`: it knows versions, by ETag.
    `rechecks_secrets`: what it writes is refused as `OutdatedSecrets` where the secrets taken out
    of it changed.
    `request_media_types`: media types of a body that is no model; `response_examples`: those of
    answers beside `response`, each with an example. `count_new_memories`: memories that a body
    asks for. `delegates`: it makes calls of its own with the same key, which are what limits and
    the audit log count.
    `read_only`: it changes nothing, whatever its method. `returns_secret`: its answer holds a
    secret, so that it is stored encrypted.
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

    @property
    def name(self) -> str:
        """As a person would name it: `POST /v1/remember`."""
        return f"{self.method} {self.path}"
