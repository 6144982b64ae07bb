"""Wires the ingest service: routes, bus consumers and background jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from reverie.bus.consumer import consume
from reverie.bus.dead_letters import handle_max_deliveries
from reverie.bus.outbox_relay import EventPublisher, relay
from reverie.bus.streams import DEAD_LETTER_WATCHER, INGEST_ENRICH, INGEST_ENRICH_BULK
from reverie.inference.model_manager import ModelManager
from reverie.inference.model_metrics import ModelMetrics
from reverie.runtime.http.routes import Route
from reverie.runtime.process.lifecycle import BackgroundJob
from reverie.runtime.process.system_resources import set_niceness
from reverie.runtime.service import Service
from reverie.runtime.settings.settings import Settings
from reverie.store.db.idempotency import IdempotencyTable
from reverie.store.db.short_ids import ShortIdResolver
from reverie.store.documents.documents import DocumentStore
from reverie.store.engine.conversations import ConversationTables
from reverie.store.graph.conflicts import ConflictFinder
from reverie.store.graph.links import LinkStore
from reverie.store.graph.project_links import ProjectLinkStore
from reverie.store.maintenance.maintenance import MaintenanceStore
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.memories.edits import CorrectionStore, EditStore
from reverie.store.memories.enrichment import EnrichmentStore
from reverie.store.memories.export_import import ExportImportStore, ScopeNoteStore
from reverie.store.memories.forgetting import ForgettingStore
from reverie.store.memories.memories import FactStore, MemoryStore, ScopeNameStore
from reverie.store.memories.pictures import PictureStore
from reverie.store.memories.tasks import TaskStore
from reverie.store.platform.administration import AdministrationStore
from reverie.store.platform.audit import AuditTable
from reverie.store.platform.event_visibility import EventVisibility
from reverie.store.platform.leader_lock import LeaderLock
from reverie.store.platform.quotas import QuotaStore
from reverie.store.search.index_changes import IndexChangeTable
from reverie.store.search.ranking_signals import RankStore
from reverie.store.search.recall_traces import RecallTraceStore
from reverie.store.sessions.active_memory_sets import ActiveMemorySetStore
from reverie.store.sessions.context import ContextStore
from reverie.store.sessions.dream_queue import DreamQueue
from reverie.store.sessions.dream_runs import DreamLimitStore, DreamRunStore
from reverie.store.sessions.sessions import SessionStore
from reverie.store.staleness.reviews import ReviewStore
from reverie.store.staleness.stale_marks import StaleMarkStore
from reverie.store.vault.redaction_backfill import RedactionBackfillStore
from reverie_services.ingest import dependencies as deps
from reverie_services.ingest.enrich.model_selection import may_choose_model, run_model_selection
from reverie_services.ingest.enrich.worker import handle_remembered
from reverie_services.ingest.enrichment_batches import BATCH_SIZE
from reverie_services.ingest.gauges import build_derivation_gauges, build_gauges
from reverie_services.ingest.outbox_cleanup import BufferedOutbox
from reverie_services.ingest.redaction_backfill import run_redaction_backfill
from reverie_services.ingest.routes import (
    administration,
    audit,
    corrections,
    dead_letters,
    documents,
    edits,
    events,
    facts,
    forgetting,
    imports,
    links,
    pictures,
    project_links,
    project_settings,
    reviews,
    tasks,
    vault,
    writes,
)
from reverie_services.ingest.scheduler import Scheduler
from reverie_services.startup import ServiceResources, build_model_manager, open_resources

READER_CONNECTIONS = 4
"""Connections that only read."""
MAX_IN_FLIGHT = 2 * BATCH_SIZE
"""Memories in hand at once, of those written one by one and of those in bulk: some are embedded
while those before are written. More in bulk would make a single one wait longer for the models."""
DERIVE_NICENESS = 5
"""The nice(2) value of a process that only derives."""


@asynccontextmanager
async def open_service(
    settings: Settings, model_manager: ModelManager | None = None
) -> AsyncIterator[Service]:
    """Opens the ingest service: it stores memories and turns, and derives from bus events.

    `model_manager`: the models, if another service of this process uses them too. Otherwise ingest
    loads them if it derives.
    """
    if settings.ingest_role == "derive":
        # Before any thread is there: each has what the first had when it began.
        set_niceness(DERIVE_NICENESS)
    async with (
        open_resources("ingest", settings, READER_CONNECTIONS) as resources,
        resources.open_language_model() as language_model,
    ):
        database, bus, vault_store = resources.database, resources.bus, resources.vault
        serves_api, derives = (settings.ingest_role != role for role in ("derive", "api"))
        models = model_manager or build_model_manager(settings, settings.recall_sparse)
        if derives or not model_manager:
            models.set_metrics(ModelMetrics(resources.registry))
        outbox = BufferedOutbox(database)
        enrichment = deps.EnrichmentDependencies(
            models,
            EnrichmentStore(database),
            DuplicateStore(database),
            vault_store.load_redactor,
            EventPublisher(bus, outbox),
            language_model,
        )
        service = resources.create_service(settings.ingest_port)
        gauges = []
        if serves_api:
            gauges += build_gauges(bus, outbox, LeaderLock(database), DreamQueue(database))
        if derives:
            gauges += build_derivation_gauges(enrichment.model_selection_queue)
        yield replace(
            service,
            routes=_build_routes(resources, enrichment) if serves_api else [],
            load_cached_redactor=vault_store.load_cached_redactor,
            checks={**service.checks, "model": models.raise_while_first_loading},
            polled_gauges=gauges,
            background=[
                outbox.run,
                *(_build_derivation_jobs(resources, enrichment) if derives else []),
                *([] if derives or model_manager else [models.load_token_counter]),
            ],
        )


def _build_routes(
    resources: ServiceResources, enrichment: deps.EnrichmentDependencies
) -> list[Route]:
    database, vault_store = resources.database, resources.vault
    settings, models = resources.settings, enrichment.model_manager
    language_model, publisher = enrichment.language_model, enrichment.publisher
    memories, edit_store = MemoryStore(database), EditStore(database)
    sessions, contexts = SessionStore(database), ContextStore(database)
    short_ids = ShortIdResolver(database)
    quotas, scope_names = QuotaStore(database), ScopeNameStore(database)
    edit_deps = deps.EditDependencies(
        memories,
        edit_store,
        ForgettingStore(database),
        StaleMarkStore(database),
        settings.content_limit,
        settings.forget_days * 86_400,
        publisher,
    )
    return [
        *writes.routes.bind(
            deps.WriteDependencies(
                settings,
                models,
                memories,
                sessions,
                short_ids,
                contexts,
                ActiveMemorySetStore(database),
                scope_names,
                DreamQueue(database),
                vault_store,
                publisher,
                ConflictFinder(database),
            )
        ),
        *edits.routes.bind(edit_deps),
        *forgetting.routes.bind(edit_deps),
        *pictures.routes.bind(
            pictures.PictureDependencies(edit_deps, PictureStore(database), language_model),
            settings.large_body_limit,
            "large_body_limit",
        ),
        *imports.build_import_routes(
            deps.ImportDependencies(
                settings,
                models,
                memories,
                edit_store,
                ExportImportStore(database),
                ScopeNoteStore(database),
                vault_store.load_redactor,
            )
        ),
        *corrections.routes.bind(
            deps.CorrectionDependencies(
                memories, sessions, short_ids, CorrectionStore(database), language_model, publisher
            )
        ),
        *facts.routes.bind(
            deps.FactDependencies(settings, FactStore(database), sessions, publisher)
        ),
        *tasks.routes.bind(
            deps.TaskDependencies(TaskStore(database), memories, settings.decay_policy, publisher)
        ),
        *links.routes.bind(deps.LinkDependencies(LinkStore(database), short_ids, publisher)),
        *reviews.routes.bind(deps.ReviewDependencies(ReviewStore(database), short_ids, publisher)),
        *events.routes.bind(
            events.EventHandlers(
                deps.EventDependencies(
                    resources.bus, EventVisibility(database), settings.max_event_watchers
                )
            )
        ),
        *vault.routes.bind(
            deps.VaultDependencies(
                vault_store, RedactionBackfillStore(database), scope_names, settings.content_limit
            )
        ),
        *administration.routes.bind(
            deps.AdministrationDependencies(
                AdministrationStore(database),
                quotas,
                short_ids,
                resources.bus,
                settings.request_timeout / 2,
            )
        ),
        *documents.routes.bind(
            DocumentStore(database), settings.large_body_limit, "large_body_limit"
        ),
        *audit.routes.bind(AuditTable(database)),
        *project_links.routes.bind(ProjectLinkStore(database)),
        *dead_letters.routes.bind(resources.bus),
        *project_settings.routes.bind(
            deps.ProjectSettingsDependencies(
                contexts,
                DreamLimitStore(database),
                resources.llm_usage,
                quotas,
            )
        ),
    ]


def _build_derivation_jobs(
    resources: ServiceResources, enrichment: deps.EnrichmentDependencies
) -> list[BackgroundJob]:
    """Builds the background jobs, which no request waits for; a separate process may run them."""
    database, bus = resources.database, resources.bus
    settings, models = resources.settings, enrichment.model_manager
    publisher = enrichment.publisher
    scheduler = Scheduler(
        deps.SchedulerDependencies(
            settings,
            enrichment,
            LeaderLock(database),
            DreamQueue(database),
            DreamRunStore(database),
            MaintenanceStore(database),
            ForgettingStore(database),
            RankStore(database),
            IdempotencyTable(database),
            RecallTraceStore(database),
            IndexChangeTable(database),
            AuditTable(database),
            ConversationTables(database),
            resources.vault,
            DocumentStore(database),
            publisher,
        )
    )
    redaction_backfill = deps.RedactionBackfillDependencies(
        RedactionBackfillStore(database),
        resources.vault.load_redactor,
        grace=settings.request_timeout,
    )
    model_selection = deps.ModelSelectionDependencies(
        enrichment.enrichment.models,
        models,
        enrichment.model_selection_queue,
        may_choose_model(settings),
    )
    enrich_single = partial(handle_remembered, enrichment, enrichment.single)
    enrich_bulk = partial(handle_remembered, enrichment, enrichment.bulk)
    return [
        models.run,
        partial(enrichment.enrichment.models.preload_used, models.request_loading),
        partial(consume, bus, INGEST_ENRICH, enrich_single, MAX_IN_FLIGHT, BATCH_SIZE),
        partial(consume, bus, INGEST_ENRICH_BULK, enrich_bulk, MAX_IN_FLIGHT, BATCH_SIZE),
        partial(relay, bus, publisher.outbox, grace=settings.outbox_sweep_after),
        partial(consume, bus, DEAD_LETTER_WATCHER, partial(handle_max_deliveries, bus)),
        scheduler.run,
        partial(run_redaction_backfill, redaction_backfill),
        partial(run_model_selection, model_selection),
    ]
