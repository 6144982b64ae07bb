"""What is no HTTP at all is answered like anything else that is wrong: with a problem document."""

from __future__ import annotations

from typing import Any

import structlog
from aiohttp import web

from reverie.contracts.problems import problem
from reverie.runtime.glance import Glancing, Turnstile
from reverie.runtime.problems import CONTENT_TYPE

log = structlog.get_logger()

TURNSTILE: web.AppKey[Turnstile] = web.AppKey("TURNSTILE", Turnstile)
"""Where a process turns requests away at a glance."""
_LONGEST = 200


class Runner(web.AppRunner):
    """Runs an application whose server speaks of broken requests in its own words."""

    __slots__ = ()

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _Server(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            loop=made._loop,
            turnstile=self.app.get(TURNSTILE),
            **made._kwargs,
        )


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)


class Connection(Glancing):
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
            told = problem("unavailable", "the connection was lost")
        elif status < 500:
            log.info("request_malformed", reason=type(exc).__name__)
            told = problem("malformed", f"this is no HTTP request: {_first_words(message)}")
        else:
            log.error("request_failed", exc_info=exc)
            told = problem("internal", "something failed inside")
        response = web.Response(
            status=told.status,
            body=told.model_dump_json(exclude_none=True).encode(),
            headers=_HEADERS,
        )
        response.force_close()
        return response


_HEADERS: dict[str, Any] = {
    "Content-Type": CONTENT_TYPE,
    "Server": "reverie",
    "X-Content-Type-Options": "nosniff",
}


def _first_words(message: str | None) -> str:
    """What the parser says, without the bytes that it quotes below."""
    words = " ".join((message or "it cannot be read").split("\n", 1)[0].split())
    return words.rstrip(":")[:_LONGEST]
