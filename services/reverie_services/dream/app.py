"""Wires the dream service: interchangeable workers, the gauges of their queue, and routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from reverie.bus.consumer import consume
from reverie.bus.credentials import NatsCredentials
from reverie.bus.nats_bus import connect
from reverie.bus.streams import DREAM_WORKERS
from reverie.inference.llm_client import open_language_model
from reverie.inference.llm_endpoint import build_language_endpoint
from reverie.inference.model_manager import ModelManager
from reverie.inference.model_metrics import ModelMetrics
from reverie.inference.token_counters import EstimatingTokenCounter
from reverie.runtime.http.audit import create_auditor
from reverie.runtime.http.read_your_writes import PositionHooks
from reverie.runtime.observability.logs import hide_secrets
from reverie.runtime.observability.metrics import PolledGauge, create_registry
from reverie.runtime.process.lifecycle import BackgroundJob
from reverie.runtime.service import Service
from reverie.runtime.settings.field_types import require_secret, secret_text
from reverie.runtime.settings.settings import Settings
from reverie.store.db.database import open_database
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.memories.maintenance import MaintenanceStore
from reverie.store.memories.ranking_signals import RankStore
from reverie.store.memories.short_ids import ShortIdResolver
from reverie.store.platform.api_keys import ApiKeyStore
from reverie.store.platform.audit import AuditTable
from reverie.store.platform.background_work import OutboxTable
from reverie.store.platform.encryption import create_cipher
from reverie.store.platform.idempotency import IdempotencyTable
from reverie.store.platform.llm_usage import LlmUsageStore
from reverie.store.platform.quotas import QuotaStore
from reverie.store.platform.vault import VaultStore
from reverie.store.sessions.dream_runs import DreamRunStore
from reverie.store.sessions.dreams import DreamStore
from reverie.store.sessions.sessions import SessionStore
from reverie.store.sessions.summaries import SummaryStore
from reverie.store.staleness.reviews import ReviewStore
from reverie_services.dream.dependencies import DreamDependencies
from reverie_services.dream.digest.llm_extractor import LlmExtractor
from reverie_services.dream.digest.worker import DreamWorker, handle_ticket
from reverie_services.dream.extraction import RuleExtractor
from reverie_services.dream.maintenance.run import run_maintenance_loop
from reverie_services.dream.metrics import DreamMetrics
from reverie_services.dream.routes.dreams import build_dream_routes
from reverie_services.dream.routes.dreams import build_maintenance_routes as tend_routes
from reverie_services.dream.routes.summaries import build_summary_routes as summary_routes
from reverie_services.dream.settings import build_dream_settings
from reverie_services.models import build_model_manager


def build_gauges(deps: DreamDependencies) -> list[PolledGauge]:
    """The queue of all tenants."""

    async def queued() -> float:
        return float((await deps.dreams.load_queue_lengths()).queued)

    async def running() -> float:
        return float((await deps.dreams.load_queue_lengths()).running)

    async def parked() -> float:
        return float((await deps.dreams.load_queue_lengths()).parked)

    async def oldest() -> float:
        return (await deps.dreams.load_queue_lengths()).oldest_seconds

    return [
        PolledGauge("reverie_dreams_queued", "Scopes that wait for a worker.", queued),
        PolledGauge("reverie_dreams_running", "Scopes that a worker digests.", running),
        PolledGauge("reverie_dreams_parked", "Scopes given up after their last attempt.", parked),
        PolledGauge("reverie_dreams_oldest_seconds", "Age of the oldest request.", oldest),
    ]


@asynccontextmanager
async def open_service(
    settings: Settings, shared_models: ModelManager | None = None
) -> AsyncIterator[Service]:
    """A worker that any ticket wakes; as many as wanted may run.

    `shared_models`: those of another service of this process, which loads them.
    """
    registry = create_registry()
    async with (
        open_database(
            require_secret(settings.database_url, "database_url"),
            settings.pool_max,
            registry=registry,
        ) as database,
        connect(
            require_secret(settings.nats_url, "nats_url"),
            "dream",
            replicas=settings.nats_replicas,
            registry=registry,
            credentials=NatsCredentials(settings.nats_creds, settings.nats_nkey, settings.ca_file),
        ) as bus,
        open_language_model(
            build_language_endpoint(settings),
            LlmUsageStore(database, settings.llm_daily_calls, settings.llm_daily_tokens),
            registry,
        ) as language_model,
    ):
        vault = VaultStore(database, create_cipher(secret_text(settings.vault_key)), hide_secrets)
        model_manager = shared_models
        jobs: list[BackgroundJob] = []
        if model_manager is None and settings.dream_worker_enabled:
            model_manager = build_model_manager(settings, metrics=ModelMetrics(registry))
            jobs.append(model_manager.run)
        deps = DreamDependencies(
            settings=build_dream_settings(settings),
            bus=bus,
            token_counter=EstimatingTokenCounter(),
            dreams=DreamStore(database),
            dream_runs=DreamRunStore(database),
            sessions=SessionStore(database),
            short_ids=ShortIdResolver(database),
            summaries=SummaryStore(database),
            maintenance=MaintenanceStore(database),
            duplicates=DuplicateStore(database),
            reviews=ReviewStore(database),
            ranks=RankStore(database),
            outbox=OutboxTable(database),
            load_redactor=vault.load_redactor,
            language_model=language_model,
            model_manager=model_manager,
            extractor=LlmExtractor(language_model, vault.load_redactor, RuleExtractor())
            if language_model
            else RuleExtractor(),
            metrics=DreamMetrics(registry),
        )
        yield Service(
            name="dream",
            port=settings.dream_port,
            routes=[*build_dream_routes(deps), *summary_routes(deps), *tend_routes(deps)],
            keys=ApiKeyStore(database),
            find_tenant=ApiKeyStore(database).find_tenant,
            quotas=QuotaStore(database),
            load_redactor=vault.load_redactor,
            positions=PositionHooks(
                database.get_log_position if settings.database_replica_url else None
            ),
            idempotency=IdempotencyTable(database),
            checks={"postgres": database.check},
            polled_gauges=build_gauges(deps),
            registry=registry,
            auditor=create_auditor(settings, "dream", AuditTable(database), registry),
            background=[
                *jobs,
                partial(run_maintenance_loop, deps),
                *(_build_worker_jobs(deps) if settings.dream_worker_enabled else ()),
            ],
        )


def _build_worker_jobs(deps: DreamDependencies) -> list[BackgroundJob]:
    worker = DreamWorker(deps)
    return [
        partial(consume, deps.bus, DREAM_WORKERS, partial(handle_ticket, deps, worker)),
        worker.run_polling_loop,
    ]
