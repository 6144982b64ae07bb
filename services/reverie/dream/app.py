"""Dream, wired: interchangeable workers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from reverie.bus.connection import connect
from reverie.bus.consume import consume
from reverie.bus.credentials import Credentials
from reverie.bus.streams import DREAM_WORKERS
from reverie.dream.extract import Rules
from reverie.dream.handlers import on_ticket
from reverie.dream.meters import Meters
from reverie.dream.parts import Parts
from reverie.dream.readings import readings
from reverie.dream.routes import routes
from reverie.dream.settings import dream_settings
from reverie.dream.summary_routes import routes as summary_routes
from reverie.dream.tend import keep_tending
from reverie.dream.tend_routes import routes as tend_routes
from reverie.dream.told import ModelExtractor
from reverie.dream.worker import Worker
from reverie.inference.asking import language_endpoint
from reverie.inference.endpoint import endpoint_of
from reverie.inference.language import open_language
from reverie.inference.meters import ModelMeters
from reverie.inference.slot import ModelSlot
from reverie.inference.tokens import EstimatingTokenCounter
from reverie.runtime.audit import auditor_of
from reverie.runtime.lifecycle import Background
from reverie.runtime.logs import hide
from reverie.runtime.metrics import new_registry
from reverie.runtime.needs import required, secret_text
from reverie.runtime.positions import Positions
from reverie.runtime.service import Service
from reverie.runtime.settings import Settings
from reverie.store.audit import AuditTable
from reverie.store.database import open_database
from reverie.store.dream_runs import DreamRuns
from reverie.store.dreams import Dreams
from reverie.store.duplicates import Duplicates
from reverie.store.idempotency import IdempotencyTable
from reverie.store.keys import Keys
from reverie.store.llm import LlmLedger
from reverie.store.meters import Allowances
from reverie.store.outbox import OutboxTable
from reverie.store.ranks import Ranks
from reverie.store.reviews import Reviews
from reverie.store.sealing import sealer_of
from reverie.store.sessions import Sessions
from reverie.store.short_ids import ShortIds
from reverie.store.summaries import Summaries
from reverie.store.tending import Tending
from reverie.store.vault import Vault


@asynccontextmanager
async def open_service(settings: Settings) -> AsyncIterator[Service]:
    """A worker that any ticket wakes; as many as wanted may run."""
    registry = new_registry()
    async with (
        open_database(
            required(settings.database_url, "database_url"),
            settings.pool_max,
            min_size=settings.pool_min,
            registry=registry,
        ) as database,
        connect(
            required(settings.nats_url, "nats_url"),
            "dream",
            replicas=settings.nats_replicas,
            registry=registry,
            credentials=Credentials(settings.nats_creds, settings.nats_nkey, settings.ca),
        ) as bus,
        open_language(
            language_endpoint(settings),
            LlmLedger(database, settings.llm_calls_a_day, settings.llm_tokens_a_day),
            registry,
        ) as llm,
    ):
        vault = Vault(database, sealer_of(secret_text(settings.vault_key)), hide)
        model = ModelSlot(
            settings.model,
            settings.home,
            settings.model_dir,
            settings.embed_threads,
            settings.model_pull,
            endpoint=endpoint_of(settings.model_url, settings.model_dims, settings.model_key),
            meters=ModelMeters(registry),
            cached=settings.embed_cached,
        )
        parts = Parts(
            settings=dream_settings(settings),
            bus=bus,
            counter=EstimatingTokenCounter(),
            dreams=Dreams(database),
            runs=DreamRuns(database),
            sessions=Sessions(database),
            ids=ShortIds(database),
            summaries=Summaries(database),
            tending=Tending(database),
            duplicates=Duplicates(database),
            reviews=Reviews(database),
            ranks=Ranks(database),
            outbox=OutboxTable(database),
            known_of=vault.known,
            language=llm,
            model=model,
            extractor=ModelExtractor(llm, vault.known, Rules()) if llm else Rules(),
            meters=Meters(registry),
        )
        yield Service(
            name="dream",
            port=settings.dream_port,
            routes=[*routes(parts), *summary_routes(parts), *tend_routes(parts)],
            keys=Keys(database),
            tenant_of=Keys(database).tenant_called,
            counts=Allowances(database),
            known_of=vault.known,
            positions=Positions(database.position if settings.database_read_url else None),
            idempotency=IdempotencyTable(database),
            checks={"postgres": database.check},
            readings=readings(parts),
            registry=registry,
            auditor=auditor_of(settings, "dream", AuditTable(database), registry),
            background=[
                model.keep_loaded,
                partial(keep_tending, parts),
                *(_work(parts) if settings.dream_work else ()),
            ],
        )


def _work(parts: Parts) -> list[Background]:
    worker = Worker(parts)
    return [
        partial(consume, parts.bus, DREAM_WORKERS, partial(on_ticket, parts, worker)),
        worker.keep_looking,
    ]
