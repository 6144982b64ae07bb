"""Dependencies that the handlers of the staleness service share."""

from __future__ import annotations

from dataclasses import dataclass, field

from reverie.bus.outbox_relay import EventPublisher
from reverie.domain.core.confidence import HALF_LIVES, HalfLives
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.runtime.http.idempotency import IdempotencyStore
from reverie.store.memories.memories import MemoryStore
from reverie.store.platform.webhooks import WebhookStore
from reverie.store.staleness.git_changes import GitChangeStore
from reverie.store.staleness.stale_marks import StaleMarkStore
from reverie_services.staleness.webhooks.signatures import UnverifiedBodies


@dataclass(frozen=True)
class StalenessDependencies:
    """Dependencies of taking git changes and marking memories; `git_limit`: bytes of a change."""

    changes: GitChangeStore
    memories: MemoryStore
    stale_marks: StaleMarkStore
    webhooks: WebhookStore
    idempotency: IdempotencyStore
    load_redactor: RedactorLoader
    publisher: EventPublisher
    unverified_bodies: UnverifiedBodies
    git_limit: int = 25 * 1024 * 1024
    half_lives: HalfLives = field(default_factory=lambda: HALF_LIVES)
