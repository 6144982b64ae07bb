"""Dependencies of the ingest service, one small record for each feature."""

from __future__ import annotations

from dataclasses import dataclass, field

from reverie.bus.interface import MessageBus
from reverie.bus.outbox_relay import EventPublisher
from reverie.domain.core.confidence import DecayPolicy
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.inference.llm_client import LanguageModel
from reverie.inference.model_manager import ModelManager
from reverie.runtime.settings.settings import Settings
from reverie.store.db.idempotency import IdempotencyTable
from reverie.store.db.short_ids import ShortIdResolver
from reverie.store.documents.documents import DocumentStore
from reverie.store.engine.conversations import ConversationTables
from reverie.store.graph.conflicts import ConflictFinder
from reverie.store.graph.links import LinkStore
from reverie.store.maintenance.maintenance import MaintenanceStore
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.memories.edits import CorrectionStore, EditStore
from reverie.store.memories.enrichment import EnrichmentStore
from reverie.store.memories.export_import import ExportImportStore, ScopeNoteStore
from reverie.store.memories.forgetting import ForgettingStore
from reverie.store.memories.memories import FactStore, MemoryStore, ScopeNameStore
from reverie.store.memories.tasks import TaskStore
from reverie.store.platform.administration import AdministrationStore
from reverie.store.platform.audit import AuditTable
from reverie.store.platform.event_visibility import EventVisibility
from reverie.store.platform.leader_lock import LeaderLock
from reverie.store.platform.quotas import LlmUsageStore, QuotaStore
from reverie.store.search.embedding_models import EmbeddingModelStore
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
from reverie.store.vault.vault import VaultStore
from reverie_services.ingest.enrichment_batches import EnrichmentBatches
from reverie_services.ingest.model_selection_queue import ModelSelectionQueue
from reverie_services.ingest.write_bursts import WriteBursts


@dataclass(frozen=True)
class WriteDependencies:
    """Dependencies of remembering, of sessions and of their turns."""

    settings: Settings
    model_manager: ModelManager
    memories: MemoryStore
    sessions: SessionStore
    short_ids: ShortIdResolver
    contexts: ContextStore
    active_memory_sets: ActiveMemorySetStore
    scope_names: ScopeNameStore
    dreams: DreamQueue
    vault: VaultStore
    publisher: EventPublisher
    conflicts: ConflictFinder
    bursts: WriteBursts = field(default_factory=WriteBursts)


@dataclass(frozen=True)
class EditDependencies:
    """Dependencies of edits, pins, confirmations and of forgetting.

    `forget_seconds`: how long a forgotten memory can be restored.
    """

    memories: MemoryStore
    edits: EditStore
    forgetting: ForgettingStore
    stale_marks: StaleMarkStore
    content_limit: int
    forget_seconds: float
    publisher: EventPublisher


@dataclass(frozen=True)
class ImportDependencies:
    """Dependencies of imports."""

    settings: Settings
    model_manager: ModelManager
    memories: MemoryStore
    edits: EditStore
    export_import: ExportImportStore
    scope_notes: ScopeNoteStore
    load_redactor: RedactorLoader


@dataclass(frozen=True)
class CorrectionDependencies:
    """Dependencies of corrections after a turn."""

    memories: MemoryStore
    sessions: SessionStore
    short_ids: ShortIdResolver
    corrections: CorrectionStore
    language_model: LanguageModel | None
    publisher: EventPublisher


@dataclass(frozen=True)
class FactDependencies:
    """Dependencies of facts."""

    settings: Settings
    facts: FactStore
    sessions: SessionStore
    publisher: EventPublisher


@dataclass(frozen=True)
class TaskDependencies:
    """Dependencies of tasks."""

    tasks: TaskStore
    memories: MemoryStore
    decay: DecayPolicy
    publisher: EventPublisher


@dataclass(frozen=True)
class LinkDependencies:
    """Dependencies of links."""

    links: LinkStore
    short_ids: ShortIdResolver
    publisher: EventPublisher


@dataclass(frozen=True)
class ReviewDependencies:
    """Dependencies of reviews of stale memories."""

    reviews: ReviewStore
    short_ids: ShortIdResolver
    publisher: EventPublisher


@dataclass(frozen=True)
class EventDependencies:
    """Dependencies of the stream of events, which `max_watchers` may follow at once."""

    bus: MessageBus
    event_visibility: EventVisibility
    max_watchers: int


@dataclass(frozen=True)
class VaultDependencies:
    """Dependencies of the vault; `value_limit` in bytes."""

    vault: VaultStore
    redaction_backfill: RedactionBackfillStore
    scope_names: ScopeNameStore
    value_limit: int


@dataclass(frozen=True)
class AdministrationDependencies:
    """Dependencies of keys, projects, scopes and deletions; `deletion_timeout` in seconds."""

    administration: AdministrationStore
    quotas: QuotaStore
    short_ids: ShortIdResolver
    bus: MessageBus
    deletion_timeout: float


@dataclass(frozen=True)
class ProjectSettingsDependencies:
    """Dependencies of what tenants and projects set."""

    contexts: ContextStore
    dream_limits: DreamLimitStore
    llm_usage: LlmUsageStore
    quotas: QuotaStore


@dataclass(frozen=True)
class DerivationDependencies:
    """Dependencies of deriving chunks, vectors, anchors and causes from memories."""

    model_manager: ModelManager
    enrichment: EnrichmentStore


@dataclass(frozen=True)
class EnrichmentDependencies(DerivationDependencies):
    """Dependencies of enriching memories and of merging their duplicates."""

    duplicates: DuplicateStore
    load_redactor: RedactorLoader
    publisher: EventPublisher
    language_model: LanguageModel | None = None
    single: EnrichmentBatches = field(default_factory=EnrichmentBatches)
    bulk: EnrichmentBatches = field(default_factory=EnrichmentBatches)
    model_selection_queue: ModelSelectionQueue = field(default_factory=ModelSelectionQueue)


@dataclass(frozen=True)
class ModelSelectionDependencies:
    """Dependencies of moving tenants to another embedding model, if `is_allowed`."""

    models: EmbeddingModelStore
    model_manager: ModelManager
    queue: ModelSelectionQueue
    is_allowed: bool


@dataclass(frozen=True)
class SchedulerDependencies:
    """Dependencies of the periodic jobs of the leader.

    `overdue_seconds`: how long an event may take, before a round does its work.
    """

    settings: Settings
    enrichment: EnrichmentDependencies
    leader_lock: LeaderLock
    dreams: DreamQueue
    dream_runs: DreamRunStore
    maintenance: MaintenanceStore
    forgetting: ForgettingStore
    ranks: RankStore
    idempotency: IdempotencyTable
    traces: RecallTraceStore
    index_changes: IndexChangeTable
    audit: AuditTable
    conversations: ConversationTables
    vault: VaultStore
    documents: DocumentStore
    publisher: EventPublisher
    overdue_seconds: float = 30.0


@dataclass(frozen=True)
class RedactionBackfillDependencies:
    """Dependencies of redacting stored texts; `grace` in seconds."""

    redaction_backfill: RedactionBackfillStore
    load_redactor: RedactorLoader
    grace: float
