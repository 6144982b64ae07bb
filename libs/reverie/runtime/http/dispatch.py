"""Finds the route of a request and runs it, for connections and for calls within the process."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from multidict import CIMultiDict
from yarl import URL

from reverie.runtime.http.audit import Auditor
from reverie.runtime.http.exchange import (
    IncomingRequest,
    OutgoingResponse,
    RequestHandler,
    iterate_once,
)
from reverie.runtime.http.instrumentation import RequestInstrumentation
from reverie.runtime.http.problem_responses import UnmatchedRequest, answer_errors
from reverie.runtime.observability.tracing import trace_headers

ANY_METHOD = "*"
_VARIABLE = re.compile(r"\\\{(\w+)\\\}")

HeaderCheck = Callable[[Mapping[str, str]], None]
"""Raises a `ReverieError` for a request that may not go on."""


@dataclass(frozen=True)
class _Endpoint:
    method: str
    path: str
    pattern: re.Pattern[str]
    handler: RequestHandler

    @property
    def methods(self) -> set[str]:
        return {"GET", "HEAD"} if self.method == "GET" else {self.method}


class Dispatcher:
    """All routes of a service, and what happens around each request.

    A request is traced, measured and audited, and its errors become problem documents. Requests
    of connections and calls within the process take this same way.
    """

    def __init__(self, instrumentation: RequestInstrumentation, auditor: Auditor | None) -> None:
        self._instrumentation = instrumentation
        self._auditor = auditor
        self._endpoints: defaultdict[str, list[_Endpoint]] = defaultdict(list)

    def add_route(self, method: str, path: str, handler: RequestHandler) -> None:
        """Adds a route. `path` has its variables in braces; a GET route also serves HEAD."""
        pattern = re.compile(_path_pattern(path))
        fixed = path.partition("{")[0].rpartition("/")[0] if "{" in path else path
        self._endpoints[fixed or "/"].append(_Endpoint(method, path, pattern, handler))

    def add_prefix(self, prefix: str, handler: RequestHandler) -> None:
        """Adds a handler for all methods at and below a path that have no route of their own."""
        pattern = re.compile(_path_pattern(prefix) + "(?P<tail>/.*)?")
        # Routes of this service go before prefixes at the same level.
        fixed = prefix.partition("{")[0].rpartition("/")[0]
        self._endpoints[fixed or "/"].append(_Endpoint(ANY_METHOD, f"{prefix}/*", pattern, handler))

    def respond(
        self, request: IncomingRequest, check_headers: HeaderCheck | None = None
    ) -> AbstractAsyncContextManager[OutgoingResponse]:
        """The response to a request; the request ends when the context is left."""
        handler = self._find_handler(request)
        return self._instrumentation.observe(request, partial(self._handle, handler, check_headers))

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | AsyncIterator[bytes] = b"",
    ) -> AsyncIterator[OutgoingResponse]:
        """Makes a call within the process. `path` is encoded and includes the query."""
        request = IncomingRequest(
            method,
            URL(path, encoded=True),
            CIMultiDict({**headers, **trace_headers()}),
            iterate_once(body) if isinstance(body, bytes) else body,
            len(body) if isinstance(body, bytes) else None,
        )
        async with self.respond(request) as response:
            if response.chunks is None:
                yield response
                return
            async with aclosing(response.chunks):
                yield response

    async def _handle(
        self,
        handler: RequestHandler,
        check_headers: HeaderCheck | None,
        request: IncomingRequest,
    ) -> OutgoingResponse:
        async def checked(request: IncomingRequest) -> OutgoingResponse:
            if check_headers is not None:
                check_headers(request.headers)
            return await handler(request)

        if self._auditor is None:
            return await answer_errors(checked, request)
        try:
            response = await answer_errors(checked, request)
        except BaseException:
            # A client that leaves must not thereby leave out an entry.
            self._auditor.record_interrupted(request)
            raise
        await self._auditor.record(request, response)
        return response

    def _find_handler(self, request: IncomingRequest) -> RequestHandler:
        """The handler of the most specific path that matches."""
        path = fixed = request.url.path_safe
        allowed_methods: set[str] = set()
        while fixed:
            for endpoint in self._endpoints.get(fixed, ()):
                match = endpoint.pattern.fullmatch(path)
                if match is None:
                    continue
                if request.method in endpoint.methods or endpoint.method == ANY_METHOD:
                    request.route_pattern = endpoint.path
                    request.path_values = {
                        name: value.replace("%2F", "/").replace("%25", "%")
                        for name, value in match.groupdict().items()
                        if value is not None
                    }
                    return endpoint.handler
                allowed_methods |= endpoint.methods
            fixed = "" if fixed == "/" else fixed.rpartition("/")[0] or "/"

        async def reject(_: IncomingRequest) -> OutgoingResponse:
            raise UnmatchedRequest(frozenset(allowed_methods))

        return reject


def _path_pattern(path: str) -> str:
    return _VARIABLE.sub(r"(?P<\1>[^{}/]+)", re.escape(path))
