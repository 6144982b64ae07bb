"""The parts that dream is wired from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from reverie.bus.port import Bus
from reverie.domain.known_secrets import Known
from reverie.dream.extract import Extractor, Rules
from reverie.dream.meters import Meters
from reverie.dream.settings import DreamSettings
from reverie.inference.language import LanguageModel
from reverie.inference.slot import ModelSlot
from reverie.inference.tokens import TokenCounter
from reverie.store.dream_runs import DreamRuns
from reverie.store.dreams import Dreams
from reverie.store.duplicates import Duplicates
from reverie.store.outbox import OutboxTable
from reverie.store.ranks import Ranks
from reverie.store.reviews import Reviews
from reverie.store.sessions import Sessions
from reverie.store.short_ids import ShortIds
from reverie.store.summaries import Summaries
from reverie.store.tending import Tending


@dataclass(frozen=True)
class Parts:
    """Everything that a worker or a door of dream may use."""

    settings: DreamSettings
    bus: Bus
    counter: TokenCounter
    dreams: Dreams
    runs: DreamRuns
    sessions: Sessions
    ids: ShortIds
    summaries: Summaries
    tending: Tending
    duplicates: Duplicates
    reviews: Reviews
    ranks: Ranks
    outbox: OutboxTable
    known_of: Callable[[int], Awaitable[Known]]
    language: LanguageModel | None = None
    extractor: Extractor = field(default_factory=Rules)
    meters: Meters = field(default_factory=lambda: Meters(CollectorRegistry()))
    model: ModelSlot | None = None
