"""Shared start-up of the services: connections, models, and the base of a `Service`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from reverie.bus.credentials import NatsCredentials
from reverie.bus.interface import MessageBus
from reverie.bus.nats_bus import connect
from reverie.inference.embedding_endpoint import EmbeddingEndpoint, build_embedding_endpoint
from reverie.inference.llm_client import LanguageModel, open_language_model
from reverie.inference.llm_endpoint import build_language_endpoint
from reverie.inference.model_manager import ModelManager, SparseMode
from reverie.inference.model_metrics import UNREGISTERED_METRICS, ModelMetrics
from reverie.runtime.http.audit import create_auditor
from reverie.runtime.http.read_your_writes import PositionHooks
from reverie.runtime.observability.logs import hide_secrets
from reverie.runtime.observability.metrics import PolledGauge, create_registry
from reverie.runtime.service import Service
from reverie.runtime.settings.field_types import require_secret, secret_text
from reverie.runtime.settings.settings import Settings
from reverie.store.db.database import Database, open_database
from reverie.store.db.encryption import SecretCipher, create_cipher
from reverie.store.db.idempotency import IdempotencyTable
from reverie.store.platform.api_keys import ApiKeyStore
from reverie.store.platform.audit import AuditTable
from reverie.store.platform.quotas import LlmUsageStore, QuotaStore
from reverie.store.sessions.dream_queue import DreamQueue
from reverie.store.vault.vault import VaultStore


@dataclass(frozen=True)
class ServiceResources:
    """The open resources of a service that writes."""

    name: str
    settings: Settings
    registry: CollectorRegistry
    database: Database
    bus: MessageBus
    cipher: SecretCipher
    vault: VaultStore

    @property
    def llm_usage(self) -> LlmUsageStore:
        """The language model limits of tenants, from the settings."""
        return LlmUsageStore(
            self.database, self.settings.llm_daily_calls, self.settings.llm_daily_tokens
        )

    def open_language_model(self) -> AbstractAsyncContextManager[LanguageModel | None]:
        """Opens the configured language model; None if none is configured."""
        endpoint = build_language_endpoint(self.settings)
        return open_language_model(endpoint, self.llm_usage, self.registry)

    def create_service(self, port: int) -> Service:
        """The service without its routes and jobs: the keys, quotas and audit that all have."""
        database, api_keys = self.database, ApiKeyStore(self.database)
        log_position = database.get_log_position if self.settings.database_replica_url else None
        return Service(
            name=self.name,
            port=port,
            keys=api_keys,
            find_tenant=api_keys.find_tenant,
            quotas=QuotaStore(database),
            load_redactor=self.vault.load_redactor,
            positions=PositionHooks(log_position),
            idempotency=IdempotencyTable(database),
            checks={"postgres": database.check},
            registry=self.registry,
            auditor=create_auditor(self.settings, self.name, AuditTable(database), self.registry),
        )


@asynccontextmanager
async def open_resources(
    name: str, settings: Settings, reader_connections: int = 0
) -> AsyncIterator[ServiceResources]:
    """The database and the bus, as the settings name them; `name`: the service that opens them."""
    registry = create_registry()
    async with (
        open_database(
            require_secret(settings.database_url, "database_url"),
            settings.pool_max,
            registry=registry,
            reader_size=reader_connections,
            tenant_memories=settings.tenant_memories,
        ) as database,
        connect(
            require_secret(settings.nats_url, "nats_url"),
            name,
            replicas=settings.nats_replicas,
            registry=registry,
            credentials=NatsCredentials(settings.nats_creds, settings.ca_file),
        ) as bus,
    ):
        cipher = create_cipher(secret_text(settings.vault_key))
        vault = VaultStore(database, cipher, hide_secrets)
        yield ServiceResources(name, settings, registry, database, bus, cipher, vault)


def build_model_manager(
    settings: Settings,
    sparse_mode: SparseMode = "off",
    metrics: ModelMetrics = UNREGISTERED_METRICS,
) -> ModelManager:
    """Builds the manager of the configured models; none is loaded yet."""
    return ModelManager(
        settings.embedding_model,
        settings.home,
        settings.embedding_model_dir,
        settings.embedding_threads,
        settings.model_download,
        sparse_mode,
        build_embedding_endpoints(settings),
        metrics=metrics,
        embeds=settings.embeddings_enabled,
    )


def build_embedding_endpoints(settings: Settings) -> dict[str, EmbeddingEndpoint]:
    """The endpoints that serve embedding models, by the model's name. Raises `Misconfigured`."""
    endpoints = {
        name: EmbeddingEndpoint(profile.url, profile.dims, secret_text(profile.key), profile.model)
        for name, profile in settings.embedding_profiles.items()
    }
    default = build_embedding_endpoint(
        settings.embedding_url, settings.embedding_dims, settings.embedding_key
    )
    return endpoints | ({settings.embedding_model: default} if default else {})


def build_dream_queue_gauges(dreams: DreamQueue) -> list[PolledGauge]:
    """The queue of dreams of all tenants. Ingest shows it too: there may be no dream worker."""

    async def queued() -> float:
        return (await dreams.load_queue_lengths()).queued

    async def running() -> float:
        return (await dreams.load_queue_lengths()).running

    async def oldest() -> float:
        return (await dreams.load_queue_lengths()).oldest_seconds

    return [
        PolledGauge("reverie_dreams_queued", "Scopes that wait for a worker.", queued),
        PolledGauge("reverie_dreams_running", "Scopes that a worker digests.", running),
        PolledGauge(
            "reverie_dreams_oldest_seconds", "Age of the oldest dream request, in seconds.", oldest
        ),
    ]
