"""Wires the ingest service: routes, bus consumers and background jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from reverie.bus.consumer import consume
from reverie.bus.credentials import NatsCredentials
from reverie.bus.dead_letters import handle_max_deliveries
from reverie.bus.nats_bus import connect
from reverie.bus.outbox_relay import relay
from reverie.bus.streams import DEAD_LETTER_WATCHER, INGEST_ENRICH
from reverie.inference.llm_client import open_language_model
from reverie.inference.llm_endpoint import build_language_endpoint
from reverie.inference.model_manager import ModelManager
from reverie.inference.model_metrics import ModelMetrics
from reverie.runtime.http.audit import create_auditor
from reverie.runtime.http.read_your_writes import PositionHooks
from reverie.runtime.http.routes import Route
from reverie.runtime.observability.logs import hide_secrets
from reverie.runtime.observability.metrics import create_registry
from reverie.runtime.process.lifecycle import BackgroundJob
from reverie.runtime.process.system_resources import set_niceness
from reverie.runtime.service import Service
from reverie.runtime.settings.field_types import require_secret, secret_text
from reverie.runtime.settings.settings import Settings
from reverie.store.db.database import Database, open_database
from reverie.store.memories.claims import ClaimStore
from reverie.store.memories.corrections import CorrectionStore
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.memories.edits import EditStore
from reverie.store.memories.enrichment import EnrichmentStore
from reverie.store.memories.export_import import ExportImportStore
from reverie.store.memories.links import LinkStore
from reverie.store.memories.maintenance import MaintenanceStore
from reverie.store.memories.memories import MemoryStore, ScopeNameStore
from reverie.store.memories.ranking_signals import RankStore
from reverie.store.memories.scope_notes import ScopeNoteStore
from reverie.store.memories.short_ids import ShortIdResolver
from reverie.store.memories.tasks import TaskStore
from reverie.store.platform.administration import AdministrationStore
from reverie.store.platform.api_keys import ApiKeyStore
from reverie.store.platform.audit import AuditTable
from reverie.store.platform.background_work import LeaderLock
from reverie.store.platform.encryption import create_cipher
from reverie.store.platform.event_visibility import EventVisibility
from reverie.store.platform.idempotency import IdempotencyTable
from reverie.store.platform.llm_usage import LlmUsageStore
from reverie.store.platform.quotas import QuotaStore
from reverie.store.platform.recall_traces import RecallTraceStore
from reverie.store.platform.redaction_backfill import RedactionBackfillStore
from reverie.store.platform.vault import VaultStore
from reverie.store.sessions.context import ContextStore
from reverie.store.sessions.dream_runs import DreamLimitStore, DreamRunStore
from reverie.store.sessions.dreams import DreamStore
from reverie.store.sessions.sessions import SessionStore
from reverie.store.staleness.reviews import ReviewStore
from reverie.store.staleness.stale_marks import StaleMarkStore
from reverie_services.ingest.batching import BATCH_SIZE
from reverie_services.ingest.dependencies import IngestDependencies
from reverie_services.ingest.enrich.model_selection import run_model_selection
from reverie_services.ingest.enrich.worker import handle_remembered
from reverie_services.ingest.gauges import build_derivation_gauges, build_gauges
from reverie_services.ingest.outbox_cleanup import BufferedOutbox
from reverie_services.ingest.redaction_backfill import run_redaction_backfill
from reverie_services.ingest.routes import administration as admin_routes
from reverie_services.ingest.routes import audit as audit_routes
from reverie_services.ingest.routes import claims as claim_routes
from reverie_services.ingest.routes import corrections as adjust_routes
from reverie_services.ingest.routes import edits as edit_routes
from reverie_services.ingest.routes import edits as restore_routes
from reverie_services.ingest.routes import events, imports, project_settings
from reverie_services.ingest.routes import links as link_routes
from reverie_services.ingest.routes import reviews as review_routes
from reverie_services.ingest.routes import tasks as task_routes
from reverie_services.ingest.routes.vault import build_vault_routes as vault_routes
from reverie_services.ingest.routes.writes import build_write_routes
from reverie_services.ingest.scheduler import run_scheduler
from reverie_services.ingest.settings import build_ingest_settings
from reverie_services.models import build_model_manager

READER_CONNECTIONS = 4
"""Connections that only read."""
MAX_IN_FLIGHT = 4 * BATCH_SIZE
"""Memories in hand at once: some are read and some embedded, while those before are written."""
DERIVE_NICENESS = 5
"""How much a process that only derives gives way to the others of its machine: see nice(2)."""


@asynccontextmanager
async def open_service(
    settings: Settings, model_manager: ModelManager | None = None
) -> AsyncIterator[Service]:
    """Memories and turns come in here: the fast path answers, the slow one follows the bus.

    `model_manager`: the models, where another service of this process uses them too.
    """
    if settings.ingest_role == "derive":
        # Before any thread is there: each has what the first had when it began.
        set_niceness(DERIVE_NICENESS)
    registry = create_registry()
    async with (
        open_database(
            require_secret(settings.database_url, "database_url"),
            settings.pool_max,
            registry=registry,
            reader_size=READER_CONNECTIONS,
        ) as database,
        connect(
            require_secret(settings.nats_url, "nats_url"),
            "ingest",
            replicas=settings.nats_replicas,
            registry=registry,
            credentials=NatsCredentials(settings.nats_creds, settings.nats_nkey, settings.ca_file),
        ) as bus,
        open_language_model(
            build_language_endpoint(settings), create_llm_usage_store(settings, database), registry
        ) as language_model,
    ):
        vault = VaultStore(database, create_cipher(secret_text(settings.vault_key)), hide_secrets)
        model_manager = model_manager or build_model_manager(settings, settings.recall_sparse)
        model_manager.set_metrics(ModelMetrics(registry))
        deps = IngestDependencies(
            settings=build_ingest_settings(settings),
            bus=bus,
            model_manager=model_manager,
            memories=MemoryStore(database),
            edits=EditStore(database),
            stale_marks=StaleMarkStore(database),
            sessions=SessionStore(database),
            short_ids=ShortIdResolver(database),
            maintenance=MaintenanceStore(database),
            dreams=DreamStore(database),
            dream_runs=DreamRunStore(database),
            dream_limits=DreamLimitStore(database),
            enrichment=EnrichmentStore(database),
            duplicates=DuplicateStore(database),
            contexts=ContextStore(database),
            export_import=ExportImportStore(database),
            scope_names=ScopeNameStore(database),
            scope_notes=ScopeNoteStore(database),
            outbox=BufferedOutbox(database),
            idempotency=IdempotencyTable(database),
            leader_lock=LeaderLock(database),
            administration=AdministrationStore(database),
            audit=AuditTable(database),
            links=LinkStore(database),
            ranks=RankStore(database),
            tasks=TaskStore(database),
            traces=RecallTraceStore(database),
            event_visibility=EventVisibility(database),
            claims=ClaimStore(database),
            vault=vault,
            redaction_backfill=RedactionBackfillStore(database),
            reviews=ReviewStore(database),
            corrections=CorrectionStore(database),
            llm_usage=create_llm_usage_store(settings, database),
            quotas=QuotaStore(database),
            language_model=language_model,
        )
        serves_api, runs_derivation = (settings.ingest_role != role for role in ("derive", "api"))
        yield Service(
            name="ingest",
            port=settings.ingest_port,
            routes=_build_routes(deps) if serves_api else [],
            keys=ApiKeyStore(database),
            find_tenant=ApiKeyStore(database).find_tenant,
            quotas=QuotaStore(database),
            load_redactor=vault.load_redactor,
            positions=PositionHooks(
                database.get_log_position if settings.database_replica_url else None
            ),
            load_cached_redactor=vault.load_cached_redactor,
            idempotency=deps.idempotency,
            checks={"postgres": database.check, "model": deps.model_manager.check_first_attempt},
            polled_gauges=[
                *(build_gauges(deps) if serves_api else []),
                *(build_derivation_gauges(deps) if runs_derivation else []),
            ],
            registry=registry,
            auditor=create_auditor(settings, "ingest", AuditTable(database), registry),
            background=[
                deps.outbox.run,
                *(
                    _build_derivation_jobs(deps)
                    if runs_derivation
                    else [deps.model_manager.load_token_counter]
                ),
            ],
        )


def _build_routes(deps: IngestDependencies) -> list[Route]:
    return [
        *build_write_routes(deps),
        *edit_routes.build_edit_routes(deps),
        *imports.build_import_routes(deps),
        *admin_routes.build_administration_routes(deps),
        *audit_routes.build_audit_routes(deps),
        *link_routes.build_link_routes(deps),
        *task_routes.build_task_routes(deps),
        *events.build_event_routes(deps),
        *claim_routes.build_claim_routes(deps),
        *vault_routes(deps),
        *project_settings.build_project_settings_routes(deps),
        *restore_routes.build_restore_routes(deps),
        *review_routes.build_review_routes(deps),
        *adjust_routes.build_correction_routes(deps),
    ]


def _build_derivation_jobs(deps: IngestDependencies) -> list[BackgroundJob]:
    """What goes on by itself: no request waits for it, so a process of its own may do it."""
    return [
        deps.model_manager.run,
        partial(deps.enrichment.models.preload_used, deps.model_manager.request_loading),
        partial(
            consume,
            deps.bus,
            INGEST_ENRICH,
            partial(handle_remembered, deps),
            MAX_IN_FLIGHT,
            BATCH_SIZE,
        ),
        partial(relay, deps.bus, deps.outbox, grace=deps.settings.outbox_sweep_after),
        partial(consume, deps.bus, DEAD_LETTER_WATCHER, partial(handle_max_deliveries, deps.bus)),
        partial(run_scheduler, deps),
        partial(run_redaction_backfill, deps),
        partial(run_model_selection, deps),
    ]


def create_llm_usage_store(settings: Settings, database: Database) -> LlmUsageStore:
    """What tenants may ask of a language model by the settings."""
    return LlmUsageStore(database, settings.llm_daily_calls, settings.llm_daily_tokens)
