"""Mounts the console below `/console`. It is loaded with its first request: many never open it."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from reverie.domain.redaction.redactor import RedactorLoader
from reverie.runtime.auth.authentication import Authenticator
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse, RequestHandler
from reverie.runtime.service import MountFactory
from reverie.store.platform.console_sessions import ConsoleSessionStore

if TYPE_CHECKING:
    from reverie_services.console.handler import Console

PREFIX = "/console"


def mount_console(
    sessions: ConsoleSessionStore, load_redactor: RedactorLoader, over_tls: bool
) -> MountFactory:
    """The console's mount. `over_tls`: the gateway speaks https, so cookies demand it."""

    def create_handler(dispatcher: Dispatcher, authenticate: Authenticator) -> RequestHandler:
        console: Console | None = None

        async def handle(request: IncomingRequest) -> OutgoingResponse:
            nonlocal console
            if console is None:
                module = await asyncio.to_thread(import_module, "reverie_services.console.handler")
                console = module.Console(
                    dispatcher, authenticate, sessions, load_redactor, over_tls
                )
            return await console.handle(request)

        return handle

    return create_handler
