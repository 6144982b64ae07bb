"""Keys over gRPC, looked at before anything of a message is taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import grpc

from reverie.contracts.problems import problem_of
from reverie.domain.errors import ReverieError
from reverie.recall.rpc_errors import refuse
from reverie.runtime.auth import Admit

_OPEN = frozenset({"Health"})
"""What needs no key."""


class Keyed(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Turns away who brings no key that is known: a message may be long, and waits unread."""

    def __init__(self, admit: Admit, service: str) -> None:
        self._admit = admit
        self._service = service

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        """The method's handler; for who is turned away one that reads nothing."""
        handler = await continuation(details)
        name = details.method.removeprefix(self._service)
        if handler is None or name == details.method or name in _OPEN:
            return handler
        given = dict(details.invocation_metadata or ()).get("authorization")
        try:
            await self._admit({"Authorization": given} if isinstance(given, str) else {})
        except ReverieError as error:
            return grpc.stream_unary_rpc_method_handler(partial(_turn_away, error))
        return handler


async def _turn_away(error: ReverieError, _: Any, context: Any) -> None:
    await refuse(context, problem_of(error))
