"""The parts that recall is wired from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.contracts.models import ModelBody
from reverie.inference.rerank import Reranker
from reverie.inference.slot import ModelSlot
from reverie.recall.gate import Gate
from reverie.recall.meters import RecallMeters
from reverie.recall.recorder import Recorder
from reverie.recall.rephrase import Rephraser
from reverie.recall.settings import RecallSettings
from reverie.recall.use import UseNotes
from reverie.store.active_sets import ActiveSets
from reverie.store.briefing import Briefings
from reverie.store.carry import Carry
from reverie.store.edits import Edits
from reverie.store.graph import Graph
from reverie.store.memories import Memories
from reverie.store.models import Models
from reverie.store.notes import Notes
from reverie.store.past import Past
from reverie.store.search import Search
from reverie.store.sessions import Sessions
from reverie.store.short_ids import ShortIds
from reverie.store.tasks import Tasks
from reverie.store.traces import Traces


@dataclass(frozen=True)
class Parts:
    """Everything that a door of recall may use."""

    settings: RecallSettings
    model: ModelSlot
    memories: Memories
    edits: Edits
    past: Past
    search: Search
    models: Models
    sessions: Sessions
    ids: ShortIds
    briefings: Briefings
    carry: Carry
    notes: Notes
    graph: Graph
    tasks: Tasks
    used: UseNotes
    active_sets: ActiveSets
    gate: Gate
    meters: RecallMeters
    traces: Traces
    recorder: Recorder
    reranker: Reranker | None = None
    rephraser: Rephraser | None = None
    other_models: Sequence[ModelBody] = ()
