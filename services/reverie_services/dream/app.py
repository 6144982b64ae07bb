"""Wires the dream service: interchangeable workers, the gauges of their queue, and routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from reverie.bus.consumer import consume
from reverie.bus.outbox_relay import EventPublisher
from reverie.bus.streams import DREAM_WORKERS
from reverie.inference.model_manager import ModelManager
from reverie.inference.model_metrics import ModelMetrics
from reverie.runtime.observability.metrics import PolledGauge
from reverie.runtime.process.lifecycle import BackgroundJob
from reverie.runtime.service import Service
from reverie.runtime.settings.settings import Settings
from reverie.store.db.short_ids import ShortIdResolver
from reverie.store.maintenance.maintenance import MaintenanceStore
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.platform.outbox import OutboxTable
from reverie.store.search.ranking_signals import RankStore
from reverie.store.sessions.dream_queue import DreamQueue
from reverie.store.sessions.dream_runs import DreamRunStore
from reverie.store.sessions.sessions import SessionStore
from reverie.store.sessions.summaries import SummaryStore
from reverie.store.staleness.reviews import ReviewStore
from reverie_services.dream.dependencies import (
    DigestDependencies,
    DreamRequestDependencies,
    MaintenanceDependencies,
)
from reverie_services.dream.digest.llm_extractor import LlmExtractor
from reverie_services.dream.digest.worker import DreamWorker, handle_ticket
from reverie_services.dream.extractor import RuleExtractor
from reverie_services.dream.maintenance.run_maintenance import run_maintenance_loop
from reverie_services.dream.metrics import DreamMetrics
from reverie_services.dream.routes import dreams as dream_routes
from reverie_services.dream.routes import summaries as summary_routes
from reverie_services.dream.settings import build_dream_settings
from reverie_services.startup import (
    build_dream_queue_gauges,
    build_model_manager,
    open_resources,
)


@asynccontextmanager
async def open_service(
    settings: Settings, shared_models: ModelManager | None = None
) -> AsyncIterator[Service]:
    """A worker that any ticket wakes; as many as wanted may run.

    `shared_models`: those of another service of this process, which loads them.
    """
    async with (
        open_resources("dream", settings) as resources,
        resources.open_language_model() as language_model,
    ):
        database, load_redactor = resources.database, resources.vault.load_redactor
        publisher = EventPublisher(resources.bus, OutboxTable(database))
        dreams, dream_runs = DreamQueue(database), DreamRunStore(database)
        dream_settings, metrics = build_dream_settings(settings), DreamMetrics(resources.registry)
        summaries, duplicates = SummaryStore(database), DuplicateStore(database)
        maintenance = MaintenanceDependencies(
            dream_settings,
            MaintenanceStore(database),
            duplicates,
            ReviewStore(database),
            RankStore(database),
            publisher,
            load_redactor,
            language_model,
        )
        requests = DreamRequestDependencies(
            dreams, dream_runs, SessionStore(database), ShortIdResolver(database), publisher
        )
        jobs: list[BackgroundJob] = [partial(run_maintenance_loop, maintenance)]
        if settings.dream_worker_enabled:
            models = shared_models
            if models is None:
                models = build_model_manager(settings, metrics=ModelMetrics(resources.registry))
                jobs.append(models.run)
            worker = DreamWorker(
                DigestDependencies(
                    dream_settings,
                    dreams,
                    dream_runs,
                    summaries,
                    duplicates,
                    publisher,
                    load_redactor,
                    models,
                    LlmExtractor(language_model, load_redactor)
                    if language_model
                    else RuleExtractor(),
                    metrics,
                    language_model,
                )
            )
            handle = partial(handle_ticket, worker)
            jobs += [
                partial(consume, resources.bus, DREAM_WORKERS, handle),
                worker.run_polling_loop,
            ]

        async def count_parked() -> float:
            return (await dreams.load_queue_lengths()).parked

        parked = PolledGauge(
            "reverie_dreams_parked", "Scopes given up after the last attempt.", count_parked
        )
        yield replace(
            resources.create_service(settings.dream_port),
            routes=[
                *dream_routes.routes.bind(requests),
                *summary_routes.routes.bind(summaries),
                *dream_routes.maintenance_routes.bind(maintenance),
            ],
            polled_gauges=[*build_dream_queue_gauges(dreams), parked],
            background=jobs,
        )
