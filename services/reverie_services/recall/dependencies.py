"""Dependencies of the recall service, one small record for each feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.contracts.admin import ModelBody
from reverie.domain.core.confidence import DecayPolicy
from reverie.inference.model_manager import ModelManager
from reverie.inference.reranker import Reranker
from reverie.runtime.limits.concurrency import ConcurrencyLimiter
from reverie.store.db.short_ids import ShortIdResolver
from reverie.store.graph.graph import GraphStore
from reverie.store.graph.project_links import ProjectLinkStore
from reverie.store.memories.edits import EditStore
from reverie.store.memories.export_import import ExportImportStore, ScopeNoteStore
from reverie.store.memories.history import HistoryStore
from reverie.store.memories.memories import MemoryStore
from reverie.store.memories.tasks import TaskStore
from reverie.store.search.embedding_models import EmbeddingModelStore
from reverie.store.search.recall_index_cache import RecallIndexCache
from reverie.store.search.recall_traces import RecallTraceStore
from reverie.store.search.search import SearchStore
from reverie.store.sessions.active_memory_sets import ActiveMemorySetStore
from reverie.store.sessions.context import ContextStore
from reverie.store.sessions.sessions import SessionStore
from reverie_services.recall.background_writers import TraceWriter, UsageWriter
from reverie_services.recall.metrics import RecallMetrics
from reverie_services.recall.query_expansion import QueryExpander
from reverie_services.recall.settings import RecallSettings


@dataclass(frozen=True)
class RecallPipelineDependencies:
    """Dependencies of the recall pipeline and its traces."""

    settings: RecallSettings
    model_manager: ModelManager
    embedding_models: EmbeddingModelStore
    search: SearchStore
    recall_indexes: RecallIndexCache
    history: HistoryStore
    limiter: ConcurrencyLimiter
    metrics: RecallMetrics
    trace_writer: TraceWriter
    reranker: Reranker | None = None
    query_expander: QueryExpander | None = None


@dataclass(frozen=True)
class RecallDependencies:
    """Dependencies of recall and preflow, which run the pipeline for a session."""

    pipeline: RecallPipelineDependencies
    sessions: SessionStore
    usage_writer: UsageWriter
    contexts: ContextStore
    active_memory_sets: ActiveMemorySetStore
    project_links: ProjectLinkStore


@dataclass(frozen=True)
class ContextDependencies:
    """Dependencies of the context block; `timeout` in seconds."""

    contexts: ContextStore
    sessions: SessionStore
    model_manager: ModelManager
    metrics: RecallMetrics
    timeout: float
    session_timeout: float


@dataclass(frozen=True)
class MemoryDependencies:
    """Dependencies of reading memories, skills, versions and provenance."""

    memories: MemoryStore
    edits: EditStore
    history: HistoryStore
    tasks: TaskStore
    decay: DecayPolicy


@dataclass(frozen=True)
class SessionDependencies:
    """Dependencies of reading sessions and their turns."""

    sessions: SessionStore
    short_ids: ShortIdResolver


@dataclass(frozen=True)
class ReplayDependencies:
    """Dependencies of replaying a session."""

    sessions: SessionStore
    memories: MemoryStore
    traces: RecallTraceStore
    trace_writer: TraceWriter
    search: SearchStore
    short_ids: ShortIdResolver


@dataclass(frozen=True)
class GraphDependencies:
    """Dependencies of subgraphs, impact and graph statistics."""

    graph: GraphStore
    memories: MemoryStore


@dataclass(frozen=True)
class ExportDependencies:
    """Dependencies of exports: `max_concurrent` are sent at once, each within `timeout` seconds."""

    export_import: ExportImportStore
    scope_notes: ScopeNoteStore
    max_concurrent: int
    timeout: float


@dataclass(frozen=True)
class ModelDependencies:
    """Dependencies of the list of models; `shared_models`: those that all tenants share."""

    model_manager: ModelManager
    embedding_models: EmbeddingModelStore
    shared_models: Sequence[ModelBody]


@dataclass(frozen=True)
class TraceDependencies:
    """Dependencies of reading recall traces."""

    traces: RecallTraceStore
    trace_writer: TraceWriter
    search: SearchStore
    short_ids: ShortIdResolver
