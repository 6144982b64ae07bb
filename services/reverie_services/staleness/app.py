"""Wires the staleness service: git changes in, stale marks on memories out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from reverie.bus.consumer import consume
from reverie.bus.credentials import NatsCredentials
from reverie.bus.nats_bus import connect
from reverie.bus.streams import STALENESS_CHANGES
from reverie.domain.core.confidence import parse_half_lives
from reverie.runtime.http.audit import create_auditor
from reverie.runtime.http.read_your_writes import PositionHooks
from reverie.runtime.observability.logs import hide_secrets
from reverie.runtime.observability.metrics import PolledGauge, create_registry
from reverie.runtime.service import Service
from reverie.runtime.settings.field_types import require_secret, secret_text
from reverie.runtime.settings.settings import Settings
from reverie.store.db.database import open_database
from reverie.store.platform.api_keys import ApiKeyStore
from reverie.store.platform.audit import AuditTable
from reverie.store.platform.background_work import LeaderLock, OutboxTable
from reverie.store.platform.encryption import create_cipher
from reverie.store.platform.idempotency import IdempotencyTable
from reverie.store.platform.quotas import QuotaStore
from reverie.store.platform.vault import VaultStore
from reverie.store.platform.webhooks import WebhookStore
from reverie.store.staleness.git_changes import GitChangeStore
from reverie.store.staleness.stale_marks import StaleMarkStore
from reverie_services.staleness.dependencies import StalenessDependencies
from reverie_services.staleness.marks.change_handlers import handle_change, run_catch_up_loop
from reverie_services.staleness.routes import anchors
from reverie_services.staleness.routes import webhooks as hook_routes
from reverie_services.staleness.routes.changes import build_change_routes
from reverie_services.staleness.settings import StalenessSettings


@asynccontextmanager
async def open_service(settings: Settings) -> AsyncIterator[Service]:
    """Git changes come in here, and marks on memories go out."""
    registry = create_registry()
    async with (
        open_database(
            require_secret(settings.database_url, "database_url"),
            settings.pool_max,
            registry=registry,
        ) as database,
        connect(
            require_secret(settings.nats_url, "nats_url"),
            "staleness",
            replicas=settings.nats_replicas,
            registry=registry,
            credentials=NatsCredentials(settings.nats_creds, settings.nats_nkey, settings.ca_file),
        ) as bus,
    ):
        sealer = create_cipher(secret_text(settings.vault_key))
        vault = VaultStore(database, sealer, hide_secrets)
        deps = StalenessDependencies(
            settings=StalenessSettings(
                git_limit=settings.git_limit,
                half_lives=parse_half_lives(settings.confidence_half_life_days),
            ),
            bus=bus,
            changes=GitChangeStore(database),
            stale_marks=StaleMarkStore(database),
            webhooks=WebhookStore(database, sealer),
            outbox=OutboxTable(database),
            idempotency=IdempotencyTable(database),
            load_redactor=vault.load_redactor,
        )

        async def behind() -> float:
            return float((await LeaderLock(database).count_backlog()).changes)

        yield Service(
            name="staleness",
            port=settings.staleness_port,
            routes=[
                *build_change_routes(deps),
                *anchors.build_anchor_routes(deps),
                *hook_routes.build_webhook_routes(deps),
            ],
            keys=ApiKeyStore(database),
            find_tenant=ApiKeyStore(database).find_tenant,
            quotas=QuotaStore(database),
            load_redactor=vault.load_redactor,
            positions=PositionHooks(
                database.get_log_position if settings.database_replica_url else None
            ),
            idempotency=deps.idempotency,
            checks={"postgres": database.check},
            registry=registry,
            auditor=create_auditor(settings, "staleness", AuditTable(database), registry),
            polled_gauges=[
                PolledGauge("reverie_changes_unprocessed", "Git changes not yet applied.", behind),
            ],
            background=[
                partial(consume, bus, STALENESS_CHANGES, partial(handle_change, deps)),
                partial(run_catch_up_loop, deps),
            ],
        )
