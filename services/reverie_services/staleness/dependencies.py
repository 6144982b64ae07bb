"""Dependencies that the handlers of the staleness service share."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.bus.outbox_relay import EventPublisher
from reverie.domain.core.confidence import DEFAULT_DECAY, DecayPolicy
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.runtime.http.idempotency import IdempotencyStore
from reverie.store.memories.memories import MemoryStore
from reverie.store.platform.webhooks import WebhookStore
from reverie.store.staleness.git_changes import GitChangeStore
from reverie.store.staleness.stale_marks import StaleMarkStore
from reverie_services.staleness.webhooks.signatures import UnverifiedBodies


@dataclass(frozen=True)
class StalenessDependencies:
    """Dependencies of taking git changes and marking memories. `body_limit`: bytes of a change.

    Without `marks_memories`, anchors follow their files, and no memory is marked.
    """

    changes: GitChangeStore
    memories: MemoryStore
    stale_marks: StaleMarkStore
    webhooks: WebhookStore
    idempotency: IdempotencyStore
    load_redactor: RedactorLoader
    publisher: EventPublisher
    unverified_bodies: UnverifiedBodies
    body_limit: int
    decay: DecayPolicy = DEFAULT_DECAY
    marks_memories: bool = True
