"""Dependencies that the handlers and background jobs of the ingest service share."""

from __future__ import annotations

from dataclasses import dataclass, field

from reverie.bus.interface import MessageBus
from reverie.inference.llm_client import LanguageModel
from reverie.inference.model_manager import ModelManager
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
from reverie.store.platform.audit import AuditTable
from reverie.store.platform.background_work import LeaderLock
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
from reverie_services.ingest.batching import EnrichmentBatches
from reverie_services.ingest.model_selection_queue import ModelSelectionQueue
from reverie_services.ingest.outbox_cleanup import BufferedOutbox
from reverie_services.ingest.settings import IngestSettings


@dataclass(frozen=True)
class IngestDependencies:
    """Everything a door or a background task of ingest may use."""

    settings: IngestSettings
    bus: MessageBus
    model_manager: ModelManager
    memories: MemoryStore
    edits: EditStore
    stale_marks: StaleMarkStore
    sessions: SessionStore
    short_ids: ShortIdResolver
    maintenance: MaintenanceStore
    dreams: DreamStore
    dream_runs: DreamRunStore
    dream_limits: DreamLimitStore
    enrichment: EnrichmentStore
    duplicates: DuplicateStore
    contexts: ContextStore
    export_import: ExportImportStore
    scope_names: ScopeNameStore
    scope_notes: ScopeNoteStore
    outbox: BufferedOutbox
    idempotency: IdempotencyTable
    leader_lock: LeaderLock
    administration: AdministrationStore
    audit: AuditTable
    links: LinkStore
    ranks: RankStore
    tasks: TaskStore
    traces: RecallTraceStore
    event_visibility: EventVisibility
    claims: ClaimStore
    vault: VaultStore
    redaction_backfill: RedactionBackfillStore
    reviews: ReviewStore
    corrections: CorrectionStore
    llm_usage: LlmUsageStore
    quotas: QuotaStore
    language_model: LanguageModel | None = None
    batches: EnrichmentBatches = field(default_factory=EnrichmentBatches)
    model_selection_queue: ModelSelectionQueue = field(default_factory=ModelSelectionQueue)
