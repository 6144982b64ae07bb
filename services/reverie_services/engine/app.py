"""Wires the engine: routes of conversations, and workers that run turns."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from reverie.bus.consumer import consume
from reverie.bus.outbox_relay import EventPublisher
from reverie.bus.streams import ENGINE_WORKERS
from reverie.client.async_client import AsyncReverie
from reverie.client.base import with_key
from reverie.domain.core.errors import Misconfigured
from reverie.inference.chat_models import open_chat_models, parse_chat_endpoints
from reverie.inference.llm_endpoint import build_language_endpoint
from reverie.mcp.tool_servers import parse_tool_servers
from reverie.runtime.observability.metrics import PolledGauge
from reverie.runtime.service import Service
from reverie.runtime.settings.field_types import secret_text
from reverie.runtime.settings.settings import Settings
from reverie.store.engine.conversations import ConversationTables
from reverie.store.engine.turns import TurnTable
from reverie.store.platform.event_visibility import EventVisibility
from reverie.store.platform.outbox import OutboxTable
from reverie_services.engine.dependencies import (
    ConversationDependencies,
    EngineSettings,
    ModelFactory,
    TurnDependencies,
)
from reverie_services.engine.events import GroupWatchers
from reverie_services.engine.leases import TurnLeases
from reverie_services.engine.metrics import EngineMetrics
from reverie_services.engine.routes import message_routes, routes
from reverie_services.engine.tools.sandbox import check_sandbox
from reverie_services.engine.worker import handle_ticket
from reverie_services.startup import open_resources

READER_CONNECTIONS = 4
MODEL_TIMEOUT = 120.0
"""Seconds without a sign after which a model has failed: large ones think for a minute."""
NOBODYS_KEY = "none"
"""No call is made with it."""


@asynccontextmanager
async def open_service(
    settings: Settings, create_model: ModelFactory | None = None
) -> AsyncIterator[Service]:
    """The routes and a worker of turns; any number of processes may run.

    `create_model`: makes the models in place of those of the settings.
    """
    if settings.vault_key is None:
        raise Misconfigured("vault_key", "the engine seals the keys of authors under it: set it")
    endpoints = parse_chat_endpoints(
        secret_text(settings.engine_models), build_language_endpoint(settings)
    )
    async with (
        open_resources("engine", settings, READER_CONNECTIONS) as resources,
        open_chat_models(endpoints, MODEL_TIMEOUT) as models,
        open_gateway(settings) as gateway,
    ):
        database, bus = resources.database, resources.bus
        engine_settings = build_engine_settings(settings)
        open_memory = partial(with_key, gateway)
        conversations = ConversationTables(database)
        turns = TurnTable(database, resources.cipher, engine_settings.lease_seconds)
        publisher = EventPublisher(bus, OutboxTable(database))
        worker = TurnDependencies(
            settings=engine_settings,
            conversations=conversations,
            turns=turns,
            publisher=publisher,
            bus=bus,
            models=models,
            create_model=create_model or models.create,
            open_memory=open_memory,
            load_redactor=resources.vault.load_redactor,
            metrics=EngineMetrics(resources.registry),
            leases=TurnLeases(turns, engine_settings.lease_seconds),
        )

        conversation = ConversationDependencies(
            engine_settings,
            conversations,
            turns,
            publisher,
            bus,
            GroupWatchers(bus, EventVisibility(database)),
            models,
            open_memory,
        )

        yield replace(
            resources.create_service(settings.engine_port),
            routes=[
                *routes.bind(conversation),
                *message_routes.bind(conversation, settings.large_body_limit, "large_body_limit"),
            ],
            polled_gauges=[
                PolledGauge(
                    "reverie_engine_queue",
                    "Turns that wait or run.",
                    partial(bus.lag, ENGINE_WORKERS),
                )
            ],
            background=[
                partial(
                    consume,
                    bus,
                    ENGINE_WORKERS,
                    partial(handle_ticket, worker),
                    concurrency=engine_settings.concurrency,
                )
            ],
        )


def open_gateway(settings: Settings) -> AsyncReverie:
    """The connections to memory, which all turns share; each call carries the key of its author."""
    url = settings.gateway_url or settings.url_of("recall")
    return AsyncReverie(url, NOBODYS_KEY, ca=settings.trusted_ca_file)


def build_engine_settings(settings: Settings) -> EngineSettings:
    """The part of the settings that the engine reads; a worker is named by host and process."""
    if "run_command" in settings.engine_tools:
        check_sandbox(settings.engine_folder)
    return EngineSettings(
        worker=f"{socket.gethostname()}/{os.getpid()}",
        folder=settings.engine_folder,
        extra_tools=frozenset(settings.engine_tools),
        servers=parse_tool_servers(secret_text(settings.engine_mcp_servers)),
        concurrency=settings.engine_concurrency,
        message_bytes=settings.turn_limit,
        lease_seconds=settings.worker_lease,
        daily_tokens=settings.engine_daily_tokens,
        daily_micro_usd=round(settings.engine_daily_usd * 1_000_000),
        chain_tokens=settings.engine_chain_tokens,
        chain_micro_usd=round(settings.engine_chain_usd * 1_000_000),
    )
