"""Mounts the console below `/console`, and loads it with its first request."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from reverie.domain.redaction.redactor import RedactorLoader
from reverie.runtime.auth.authentication import Authenticator, TenantLookup
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse, RequestHandler
from reverie.runtime.service import MountFactory, create_token_verifier
from reverie.runtime.settings.settings import Settings
from reverie.store.platform.console_sessions import ConsoleSessionStore

if TYPE_CHECKING:
    from reverie_services.console.handler import Console
    from reverie_services.console.oidc_sign_in import OidcSignIn

PREFIX = "/console"


def mount_console(
    sessions: ConsoleSessionStore,
    load_redactor: RedactorLoader,
    settings: Settings,
    find_tenant: TenantLookup,
) -> MountFactory:
    """The console's mount. Raises `Misconfigured` if the provider's sign-in lacks a setting."""
    # With TLS at the gateway, cookies are sent over https only.
    over_tls = settings.tls_cert is not None
    oidc: OidcSignIn | None = None
    if settings.oidc_client_id is not None:
        from reverie_services.console.oidc_sign_in import create_oidc_sign_in

        oidc = create_oidc_sign_in(settings, create_token_verifier(find_tenant, settings))

    def create_handler(dispatcher: Dispatcher, authenticate: Authenticator) -> RequestHandler:
        console: Console | None = None

        async def handle(request: IncomingRequest) -> OutgoingResponse:
            nonlocal console
            if console is None:
                module = await asyncio.to_thread(import_module, "reverie_services.console.handler")
                console = module.Console(
                    dispatcher,
                    authenticate,
                    sessions,
                    load_redactor,
                    over_tls,
                    settings.large_body_limit,
                    oidc,
                )
            return await console.handle(request)

        return handle

    return create_handler
