"""What enrichment takes, over a store, without a model and without a bus."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import AsyncMock

from reverie.bus.interface import MessageBus
from reverie.bus.outbox_relay import EventPublisher
from reverie.inference.llm_client import LanguageModel
from reverie.inference.model_manager import ModelManager
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.memories.enrichment import EnrichmentStore
from reverie.store.platform.outbox import OutboxTable
from reverie.store.vault.vault import VaultStore
from reverie_services.ingest.dependencies import EnrichmentDependencies
from tests.support.store_setup import Store

REFUSED = """
create function refused() returns trigger language plpgsql as $$
begin
  raise exception 'this one cannot be written';
end $$;
create trigger refused before {} for each row when ({}) execute function refused()
"""
"""A trigger that refuses some writes."""


def build_enrichment(store: Store, language: LanguageModel | None = None) -> EnrichmentDependencies:
    """The bus is a mock, as `.publisher.bus`."""
    return EnrichmentDependencies(
        ModelManager("none", Path(), None, 1, False),
        EnrichmentStore(store.db),
        DuplicateStore(store.db),
        VaultStore(store.db).load_redactor,
        EventPublisher(AsyncMock(spec=MessageBus), OutboxTable(store.db)),
        language,
    )
