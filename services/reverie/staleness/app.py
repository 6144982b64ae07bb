"""Staleness, wired."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from reverie.bus.connection import connect
from reverie.bus.consume import consume
from reverie.bus.credentials import Credentials
from reverie.bus.streams import STALENESS_CHANGES
from reverie.domain.confidence import half_lives
from reverie.runtime.audit import auditor_of
from reverie.runtime.logs import hide
from reverie.runtime.metrics import Reading, new_registry
from reverie.runtime.needs import required, secret_text
from reverie.runtime.positions import Positions
from reverie.runtime.service import Service
from reverie.runtime.settings import Settings
from reverie.staleness import anchor_routes, hook_routes
from reverie.staleness.handlers import catch_up, on_changed
from reverie.staleness.parts import Parts
from reverie.staleness.routes import routes
from reverie.staleness.settings import StalenessSettings
from reverie.store.audit import AuditTable
from reverie.store.changes import Changes
from reverie.store.clock import Clock
from reverie.store.database import open_database
from reverie.store.doubts import Doubts
from reverie.store.hooks import Hooks
from reverie.store.idempotency import IdempotencyTable
from reverie.store.keys import Keys
from reverie.store.meters import Allowances
from reverie.store.outbox import OutboxTable
from reverie.store.sealing import sealer_of
from reverie.store.vault import Vault


@asynccontextmanager
async def open_service(settings: Settings) -> AsyncIterator[Service]:
    """Git changes come in here, and marks on memories go out."""
    registry = new_registry()
    async with (
        open_database(
            required(settings.database_url, "database_url"),
            settings.pool_max,
            min_size=settings.pool_min,
            registry=registry,
        ) as database,
        connect(
            required(settings.nats_url, "nats_url"),
            "staleness",
            replicas=settings.nats_replicas,
            registry=registry,
            credentials=Credentials(settings.nats_creds, settings.nats_nkey, settings.ca),
        ) as bus,
    ):
        sealer = sealer_of(secret_text(settings.vault_key))
        vault = Vault(database, sealer, hide)
        parts = Parts(
            settings=StalenessSettings(
                git_limit=settings.git_limit, half_lives=half_lives(settings.half_life_days)
            ),
            bus=bus,
            changes=Changes(database),
            doubts=Doubts(database),
            hooks=Hooks(database, sealer),
            outbox=OutboxTable(database),
            idempotency=IdempotencyTable(database),
            known_of=vault.known,
        )

        async def behind() -> float:
            return float((await Clock(database).behind()).changes)

        yield Service(
            name="staleness",
            port=settings.staleness_port,
            routes=[*routes(parts), *anchor_routes.routes(parts), *hook_routes.routes(parts)],
            keys=Keys(database),
            tenant_of=Keys(database).tenant_called,
            counts=Allowances(database),
            known_of=vault.known,
            positions=Positions(database.position if settings.database_read_url else None),
            idempotency=parts.idempotency,
            checks={"postgres": database.check},
            registry=registry,
            auditor=auditor_of(settings, "staleness", AuditTable(database), registry),
            readings=[
                Reading("reverie_changes_unprocessed", "Git changes not yet applied.", behind),
            ],
            background=[
                partial(consume, bus, STALENESS_CHANGES, partial(on_changed, parts)),
                partial(catch_up, parts),
            ],
        )
