"""The parts that ingest is wired from."""

from __future__ import annotations

from dataclasses import dataclass, field

from reverie.bus.port import Bus
from reverie.inference.language import LanguageModel
from reverie.inference.slot import ModelSlot
from reverie.ingest.clearing import Clearing
from reverie.ingest.letters import Letters
from reverie.ingest.order import Order
from reverie.ingest.settings import IngestSettings
from reverie.store.adjusting import Adjusting
from reverie.store.administration import Administration
from reverie.store.audit import AuditTable
from reverie.store.briefing import Briefings
from reverie.store.carry import Carry
from reverie.store.claims import Claims
from reverie.store.clock import Clock
from reverie.store.doubts import Doubts
from reverie.store.dream_runs import DreamLimits
from reverie.store.dreams import Dreams
from reverie.store.duplicates import Duplicates
from reverie.store.edits import Edits
from reverie.store.enrichment import Enrichment
from reverie.store.idempotency import IdempotencyTable
from reverie.store.links import Links
from reverie.store.llm import LlmLedger
from reverie.store.memories import Memories
from reverie.store.meters import Allowances
from reverie.store.names import Names
from reverie.store.notes import Notes
from reverie.store.ranks import Ranks
from reverie.store.reviews import Reviews
from reverie.store.scrubbing import Scrubbing
from reverie.store.sessions import Sessions
from reverie.store.short_ids import ShortIds
from reverie.store.tasks import Tasks
from reverie.store.tending import Tending
from reverie.store.traces import Traces
from reverie.store.vault import Vault
from reverie.store.watched import Watched


@dataclass(frozen=True)
class Parts:
    """Everything a door or a background task of ingest may use."""

    settings: IngestSettings
    bus: Bus
    model: ModelSlot
    memories: Memories
    edits: Edits
    doubts: Doubts
    sessions: Sessions
    ids: ShortIds
    tending: Tending
    dreams: Dreams
    limits: DreamLimits
    enrichment: Enrichment
    duplicates: Duplicates
    briefings: Briefings
    carry: Carry
    names: Names
    notes: Notes
    outbox: Clearing
    idempotency: IdempotencyTable
    clock: Clock
    administration: Administration
    audit: AuditTable
    links: Links
    ranks: Ranks
    tasks: Tasks
    traces: Traces
    watched: Watched
    claims: Claims
    vault: Vault
    scrubbing: Scrubbing
    reviews: Reviews
    adjusting: Adjusting
    llm: LlmLedger
    meters: Allowances
    language: LanguageModel | None = None
    order: Order = field(default_factory=Order)
    letters: Letters = field(default_factory=Letters)
