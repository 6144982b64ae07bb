"""Dependencies that the handlers and the pipeline of the recall service share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.contracts.admin import ModelBody
from reverie.inference.model_manager import ModelManager
from reverie.inference.reranker import Reranker
from reverie.store.memories.edits import EditStore
from reverie.store.memories.export_import import ExportImportStore
from reverie.store.memories.graph import GraphStore
from reverie.store.memories.history import HistoryStore
from reverie.store.memories.memories import MemoryStore
from reverie.store.memories.scope_notes import ScopeNoteStore
from reverie.store.memories.short_ids import ShortIdResolver
from reverie.store.memories.tasks import TaskStore
from reverie.store.platform.recall_traces import RecallTraceStore
from reverie.store.search.embedding_models import EmbeddingModelStore
from reverie.store.search.search import SearchStore
from reverie.store.sessions.active_memory_sets import ActiveMemorySetStore
from reverie.store.sessions.context import ContextStore
from reverie.store.sessions.sessions import SessionStore
from reverie_services.recall.background_writers import TraceWriter, UsageWriter
from reverie_services.recall.concurrency_limit import RecallConcurrencyLimit
from reverie_services.recall.metrics import RecallMetrics
from reverie_services.recall.query_expansion import QueryExpander
from reverie_services.recall.settings import RecallSettings


@dataclass(frozen=True)
class RecallDependencies:
    """Everything that a door of recall may use."""

    settings: RecallSettings
    model_manager: ModelManager
    memories: MemoryStore
    edits: EditStore
    history: HistoryStore
    search: SearchStore
    embedding_models: EmbeddingModelStore
    sessions: SessionStore
    short_ids: ShortIdResolver
    contexts: ContextStore
    export_import: ExportImportStore
    scope_notes: ScopeNoteStore
    graph: GraphStore
    tasks: TaskStore
    usage_writer: UsageWriter
    active_memory_sets: ActiveMemorySetStore
    concurrency_limit: RecallConcurrencyLimit
    metrics: RecallMetrics
    traces: RecallTraceStore
    trace_writer: TraceWriter
    reranker: Reranker | None = None
    query_expander: QueryExpander | None = None
    shared_models: Sequence[ModelBody] = ()
