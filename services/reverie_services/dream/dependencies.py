"""Dependencies of the dream service, one small record for each feature."""

from __future__ import annotations

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from reverie.bus.outbox_relay import EventPublisher
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.inference.llm_client import LanguageModel
from reverie.inference.model_manager import ModelManager
from reverie.inference.token_counters import EstimatingTokenCounter, TokenCounter
from reverie.store.db.short_ids import ShortIdResolver
from reverie.store.maintenance.maintenance import MaintenanceStore
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.search.ranking_signals import RankStore
from reverie.store.sessions.dream_queue import DreamQueue
from reverie.store.sessions.dream_runs import DreamRunStore
from reverie.store.sessions.sessions import SessionStore
from reverie.store.sessions.summaries import SummaryStore
from reverie.store.staleness.reviews import ReviewStore
from reverie_services.dream.extractor import Extractor, RuleExtractor
from reverie_services.dream.metrics import DreamMetrics
from reverie_services.dream.settings import DreamSettings


@dataclass(frozen=True)
class DigestDependencies:
    """Dependencies of the workers that digest sessions; without `model_manager` words decide."""

    settings: DreamSettings
    dreams: DreamQueue
    dream_runs: DreamRunStore
    summaries: SummaryStore
    duplicates: DuplicateStore
    publisher: EventPublisher
    load_redactor: RedactorLoader
    model_manager: ModelManager | None = None
    extractor: Extractor = field(default_factory=RuleExtractor)
    metrics: DreamMetrics = field(default_factory=lambda: DreamMetrics(CollectorRegistry()))
    language_model: LanguageModel | None = None

    @property
    def token_counter(self) -> TokenCounter:
        """The counter of the embedding model, else an estimate."""
        return self.model_manager.counter if self.model_manager else EstimatingTokenCounter()


@dataclass(frozen=True)
class MaintenanceDependencies:
    """Dependencies of the maintenance steps."""

    settings: DreamSettings
    maintenance: MaintenanceStore
    duplicates: DuplicateStore
    reviews: ReviewStore
    ranks: RankStore
    publisher: EventPublisher
    load_redactor: RedactorLoader
    language_model: LanguageModel | None = None


@dataclass(frozen=True)
class DreamRequestDependencies:
    """Dependencies of requesting and listing dreams."""

    dreams: DreamQueue
    dream_runs: DreamRunStore
    sessions: SessionStore
    short_ids: ShortIdResolver
    publisher: EventPublisher
