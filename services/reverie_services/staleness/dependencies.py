"""Dependencies that the handlers of the staleness service share."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.bus.interface import MessageBus
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.runtime.http.idempotency import IdempotencyStore
from reverie.store.platform.background_work import OutboxTable
from reverie.store.platform.webhooks import WebhookStore
from reverie.store.staleness.git_changes import GitChangeStore
from reverie.store.staleness.stale_marks import StaleMarkStore
from reverie_services.staleness.settings import StalenessSettings


@dataclass(frozen=True)
class StalenessDependencies:
    """Everything that a door of staleness may use."""

    settings: StalenessSettings
    bus: MessageBus
    changes: GitChangeStore
    stale_marks: StaleMarkStore
    webhooks: WebhookStore
    outbox: OutboxTable
    idempotency: IdempotencyStore
    load_redactor: RedactorLoader
