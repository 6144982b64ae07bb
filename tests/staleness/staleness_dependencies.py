"""Makes the dependencies of the staleness service over a store and a bus of the test's choice."""

from __future__ import annotations

from reverie.bus.interface import MessageBus
from reverie.bus.outbox_relay import EventPublisher
from reverie.store.db.encryption import create_cipher
from reverie.store.db.idempotency import IdempotencyTable
from reverie.store.memories.memories import MemoryStore
from reverie.store.platform.outbox import OutboxTable
from reverie.store.platform.webhooks import WebhookStore
from reverie.store.staleness.git_changes import GitChangeStore
from reverie.store.staleness.stale_marks import StaleMarkStore
from reverie.store.vault.vault import VaultStore
from reverie_services.staleness.dependencies import StalenessDependencies
from reverie_services.staleness.webhooks.signatures import UnverifiedBodies
from tests.support.store_setup import Store


def build_parts(store: Store, bus: MessageBus) -> StalenessDependencies:
    return StalenessDependencies(
        GitChangeStore(store.db),
        MemoryStore(store.db),
        StaleMarkStore(store.db),
        WebhookStore(store.db, create_cipher(None)),
        IdempotencyTable(store.db),
        VaultStore(store.db).load_redactor,
        EventPublisher(bus, OutboxTable(store.db)),
        UnverifiedBodies(1 << 20, 1 << 20),
        1 << 20,
    )
