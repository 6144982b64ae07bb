"""Answers requests that are not valid HTTP with a problem document."""

from __future__ import annotations

from typing import Any

import structlog
from aiohttp import web

from reverie.contracts.problems import build_problem
from reverie.runtime.http.early_rejection import EarlyRejectionHandler, RejectionCache
from reverie.runtime.http.problem_responses import PROBLEM_MEDIA_TYPE

log = structlog.get_logger()

REJECTION_CACHE: web.AppKey[RejectionCache] = web.AppKey("TURNSTILE", RejectionCache)
"""Where a process turns requests away at a glance."""
_MAX_MESSAGE_LENGTH = 200


class HttpRunner(web.AppRunner):
    """Runs an application whose server speaks of broken requests in its own words."""

    __slots__ = ()

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        return _ProblemServer(
            server.request_handler,
            request_factory=server.request_factory,
            handler_cancellation=server.handler_cancellation,
            loop=server._loop,
            turnstile=self.app.get(REJECTION_CACHE),
            **server._kwargs,
        )


class _ProblemServer(web.Server):
    def __call__(self) -> web.RequestHandler:
        return HttpConnection(self, loop=self._loop, **self._kwargs)


class HttpConnection(EarlyRejectionHandler):
    """One connection, and what it says where nothing can be understood."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The document; the connection ends, for nothing on it can be understood any more."""
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the response is sent already") from exc
        if isinstance(exc, ConnectionError):
            log.info("client_went_away")
            document = build_problem("unavailable", "the connection was lost")
        elif status < 500:
            log.info("request_malformed", reason=type(exc).__name__)
            document = build_problem(
                "malformed", f"this is no HTTP request: {_first_message_line(message)}"
            )
        else:
            log.error("request_failed", exc_info=exc)
            document = build_problem("internal", "something failed inside")
        response = web.Response(
            status=document.status,
            body=document.model_dump_json(exclude_none=True).encode(),
            headers=_HEADERS,
        )
        response.force_close()
        return response


_HEADERS: dict[str, Any] = {
    "Content-Type": PROBLEM_MEDIA_TYPE,
    "Server": "reverie",
    "X-Content-Type-Options": "nosniff",
}


def _first_message_line(message: str | None) -> str:
    """What the parser says, without the bytes that it quotes below."""
    words = " ".join((message or "it cannot be read").split("\n", 1)[0].split())
    return words.rstrip(":")[:_MAX_MESSAGE_LENGTH]
