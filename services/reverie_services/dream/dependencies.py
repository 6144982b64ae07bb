"""Dependencies that the workers and handlers of the dream service share."""

from __future__ import annotations

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from reverie.bus.interface import MessageBus
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.inference.llm_client import LanguageModel
from reverie.inference.model_manager import ModelManager
from reverie.inference.token_counters import TokenCounter
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.memories.maintenance import MaintenanceStore
from reverie.store.memories.ranking_signals import RankStore
from reverie.store.memories.short_ids import ShortIdResolver
from reverie.store.platform.background_work import OutboxTable
from reverie.store.sessions.dream_runs import DreamRunStore
from reverie.store.sessions.dreams import DreamStore
from reverie.store.sessions.sessions import SessionStore
from reverie.store.sessions.summaries import SummaryStore
from reverie.store.staleness.reviews import ReviewStore
from reverie_services.dream.extraction import Extractor, RuleExtractor
from reverie_services.dream.metrics import DreamMetrics
from reverie_services.dream.settings import DreamSettings


@dataclass(frozen=True)
class DreamDependencies:
    """Everything that a worker or a door of dream may use."""

    settings: DreamSettings
    bus: MessageBus
    token_counter: TokenCounter
    dreams: DreamStore
    dream_runs: DreamRunStore
    sessions: SessionStore
    short_ids: ShortIdResolver
    summaries: SummaryStore
    maintenance: MaintenanceStore
    duplicates: DuplicateStore
    reviews: ReviewStore
    ranks: RankStore
    outbox: OutboxTable
    load_redactor: RedactorLoader
    language_model: LanguageModel | None = None
    extractor: Extractor = field(default_factory=RuleExtractor)
    metrics: DreamMetrics = field(default_factory=lambda: DreamMetrics(CollectorRegistry()))
    model_manager: ModelManager | None = None
