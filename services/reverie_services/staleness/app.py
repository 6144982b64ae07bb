"""Wires the staleness service: git changes in, stale marks on memories out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from reverie.bus.consumer import consume
from reverie.bus.outbox_relay import EventPublisher
from reverie.bus.streams import STALENESS_CHANGES
from reverie.runtime.observability.metrics import PolledGauge
from reverie.runtime.service import Service
from reverie.runtime.settings.settings import Settings
from reverie.store.db.idempotency import IdempotencyTable
from reverie.store.memories.memories import MemoryStore
from reverie.store.platform.leader_lock import LeaderLock
from reverie.store.platform.outbox import OutboxTable
from reverie.store.platform.webhooks import WebhookStore
from reverie.store.staleness.git_changes import GitChangeStore
from reverie.store.staleness.stale_marks import StaleMarkStore
from reverie_services.staleness.dependencies import StalenessDependencies
from reverie_services.staleness.marks.change_handlers import handle_change, run_catch_up_loop
from reverie_services.staleness.routes import anchors, changes
from reverie_services.staleness.routes.webhooks import build_webhook_routes
from reverie_services.staleness.webhooks.signatures import UnverifiedBodies
from reverie_services.startup import open_resources


@asynccontextmanager
async def open_service(settings: Settings) -> AsyncIterator[Service]:
    """Git changes come in here, and marks on memories go out."""
    async with open_resources("staleness", settings) as resources:
        database, bus = resources.database, resources.bus
        deps = StalenessDependencies(
            GitChangeStore(database),
            MemoryStore(database),
            StaleMarkStore(database),
            WebhookStore(database, resources.cipher),
            IdempotencyTable(database),
            resources.vault.load_redactor,
            EventPublisher(bus, OutboxTable(database)),
            # The largest delivery of four addresses at once, and two of one address.
            UnverifiedBodies(4 * settings.large_body_limit, 2 * settings.large_body_limit),
            settings.large_body_limit,
            settings.decay_policy,
            settings.stale_marks,
        )

        async def unprocessed() -> float:
            return (await LeaderLock(database).count_backlog()).changes

        async def failed() -> float:
            return (await LeaderLock(database).count_backlog()).failed_changes

        yield replace(
            resources.create_service(settings.staleness_port),
            routes=[
                *changes.routes.bind(deps, settings.large_body_limit, "large_body_limit"),
                *anchors.routes.bind(deps),
                *build_webhook_routes(deps),
            ],
            polled_gauges=[
                PolledGauge(
                    "reverie_changes_unprocessed", "Git changes not yet applied.", unprocessed
                ),
                PolledGauge(
                    "reverie_changes_failed", "Git changes that failed five times.", failed
                ),
            ],
            background=[
                partial(consume, bus, STALENESS_CHANGES, partial(handle_change, deps)),
                partial(run_catch_up_loop, deps),
            ],
        )
