"""The description of a route: what it takes, what it gives, and who may use it.

A `RouteTable` builds routes from the functions that handle them."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from pydantic import BaseModel

from reverie.runtime.http.calls import Reply, RouteHandler
from reverie.runtime.http.exchange import IncomingRequest
from reverie.runtime.http.streaming import StreamingReply

Dependencies = TypeVar("Dependencies")
BoundHandler = TypeVar(
    "BoundHandler", bound=Callable[..., Awaitable[BaseModel | Reply | StreamingReply]]
)

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


class RouteTable(Generic[Dependencies]):
    """The routes of one subject, each declared at the function that handles it.

    A handler takes the dependencies and the `Call`. Its annotations name the models of the body,
    the query and the response; the first paragraph of its docstring is the summary.
    """

    def __init__(self) -> None:
        self._declared: list[tuple[str, Callable[..., Any], dict[str, Any]]] = []

    def add(self, name: str, **options: Any) -> Callable[[BoundHandler], BoundHandler]:
        """Declares a handler. `name`: as in `POST /v1/remember`; `options`: fields of `Route`."""

        def declare(handler: BoundHandler) -> BoundHandler:
            self._declared.append((name, handler, options))
            return handler

        return declare

    def bind(
        self, dependencies: Dependencies, body_limit: int = 0, body_limit_setting: str = ""
    ) -> list[Route]:
        """The routes, whose handlers use these dependencies. `body_limit`: of those with a body."""
        routes = [
            _build_route(name, partial(handler, dependencies), handler, options)
            for name, handler, options in self._declared
        ]
        return [
            replace(route, body_limit=body_limit, body_limit_setting=body_limit_setting)
            if body_limit and route.body
            else route
            for route in routes
        ]


def _build_route(
    name: str, handler: RouteHandler, function: Callable[..., Any], options: dict[str, Any]
) -> Route:
    hints = get_type_hints(function)
    body, query = (None if model is type(None) else model for model in get_args(hints["call"]))
    answer = hints["return"]
    derived: dict[str, Any] = {
        "body": body,
        "query": query,
        "response": answer if issubclass(answer, BaseModel) else None,
        "summary": (inspect.getdoc(function) or "").partition("\n\n")[0].removesuffix("."),
    }
    method, path = name.split(" ")
    return Route(method, path, handler, **(derived | options))
