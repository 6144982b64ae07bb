"""Ingest, wired."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from reverie.bus.connection import connect
from reverie.bus.consume import consume
from reverie.bus.credentials import Credentials
from reverie.bus.dead import rescue
from reverie.bus.relay import relay
from reverie.bus.streams import DEAD_WATCH, INGEST_ENRICH
from reverie.inference.asking import language_endpoint
from reverie.inference.endpoint import endpoint_of
from reverie.inference.language import open_language
from reverie.inference.meters import ModelMeters
from reverie.inference.slot import ModelSlot
from reverie.ingest import (
    adjust_routes,
    admin_routes,
    audit_routes,
    claim_routes,
    edit_routes,
    event_routes,
    import_routes,
    link_routes,
    project_routes,
    restore_routes,
    review_routes,
    task_routes,
)
from reverie.ingest.choosing import keep_choosing
from reverie.ingest.clearing import Clearing
from reverie.ingest.handlers import on_remembered
from reverie.ingest.order import AT_ONCE
from reverie.ingest.parts import Parts
from reverie.ingest.readings import of_deriving, readings
from reverie.ingest.rounds import keep_time
from reverie.ingest.routes import routes
from reverie.ingest.scrub import keep_scrubbing
from reverie.ingest.settings import ingest_settings
from reverie.ingest.vault_routes import routes as vault_routes
from reverie.runtime.audit import auditor_of
from reverie.runtime.lifecycle import Background
from reverie.runtime.logs import hide
from reverie.runtime.manners import give_way
from reverie.runtime.metrics import new_registry
from reverie.runtime.needs import required, secret_text
from reverie.runtime.positions import Positions
from reverie.runtime.routes import Route
from reverie.runtime.service import Service
from reverie.runtime.settings import Settings
from reverie.store.adjusting import Adjusting
from reverie.store.administration import Administration
from reverie.store.audit import AuditTable
from reverie.store.briefing import Briefings
from reverie.store.carry import Carry
from reverie.store.claims import Claims
from reverie.store.clock import Clock
from reverie.store.database import Database, open_database
from reverie.store.doubts import Doubts
from reverie.store.dream_runs import DreamLimits
from reverie.store.dreams import Dreams
from reverie.store.duplicates import Duplicates
from reverie.store.edits import Edits
from reverie.store.enrichment import Enrichment
from reverie.store.idempotency import IdempotencyTable
from reverie.store.keys import Keys
from reverie.store.links import Links
from reverie.store.llm import LlmLedger
from reverie.store.memories import Memories
from reverie.store.meters import Allowances
from reverie.store.names import Names
from reverie.store.notes import Notes
from reverie.store.ranks import Ranks
from reverie.store.reviews import Reviews
from reverie.store.scrubbing import Scrubbing
from reverie.store.sealing import sealer_of
from reverie.store.sessions import Sessions
from reverie.store.short_ids import ShortIds
from reverie.store.tasks import Tasks
from reverie.store.tending import Tending
from reverie.store.traces import Traces
from reverie.store.vault import Vault
from reverie.store.watched import Watched

READERS = 4
"""Connections that only read."""
IN_HAND = 4 * AT_ONCE
"""Memories in hand at once: some are read and some embedded, while those before are written."""
YIELDS = 5
"""How much a process that only derives gives way to the others of its machine: see nice(2)."""


@asynccontextmanager
async def open_service(settings: Settings) -> AsyncIterator[Service]:
    """Memories and turns come in here: the fast path answers, the slow one follows the bus."""
    if settings.ingest_role == "derive":
        # Before any thread is there: each has what the first had when it began.
        give_way(YIELDS)
    registry = new_registry()
    async with (
        open_database(
            required(settings.database_url, "database_url"),
            settings.pool_max,
            min_size=settings.pool_min,
            registry=registry,
            readers=READERS,
        ) as database,
        connect(
            required(settings.nats_url, "nats_url"),
            "ingest",
            replicas=settings.nats_replicas,
            registry=registry,
            credentials=Credentials(settings.nats_creds, settings.nats_nkey, settings.ca),
        ) as bus,
        open_language(
            language_endpoint(settings), ledger_of(settings, database), registry
        ) as language,
    ):
        vault = Vault(database, sealer_of(secret_text(settings.vault_key)), hide)
        parts = Parts(
            settings=ingest_settings(settings),
            bus=bus,
            model=ModelSlot(
                settings.model,
                settings.home,
                settings.model_dir,
                settings.embed_threads,
                settings.model_pull,
                settings.recall_sparse,
                endpoint_of(settings.model_url, settings.model_dims, settings.model_key),
                meters=ModelMeters(registry),
                cached=settings.embed_cached,
            ),
            memories=Memories(database),
            edits=Edits(database),
            doubts=Doubts(database),
            sessions=Sessions(database),
            ids=ShortIds(database),
            tending=Tending(database),
            dreams=Dreams(database),
            limits=DreamLimits(database),
            enrichment=Enrichment(database),
            duplicates=Duplicates(database),
            briefings=Briefings(database),
            carry=Carry(database),
            names=Names(database),
            notes=Notes(database),
            outbox=Clearing(database),
            idempotency=IdempotencyTable(database),
            clock=Clock(database),
            administration=Administration(database),
            audit=AuditTable(database),
            links=Links(database),
            ranks=Ranks(database),
            tasks=Tasks(database),
            traces=Traces(database),
            watched=Watched(database),
            claims=Claims(database),
            vault=vault,
            scrubbing=Scrubbing(database),
            reviews=Reviews(database),
            adjusting=Adjusting(database),
            llm=ledger_of(settings, database),
            meters=Allowances(database),
            language=language,
        )
        answers, derives = (settings.ingest_role != role for role in ("derive", "api"))
        yield Service(
            name="ingest",
            port=settings.ingest_port,
            routes=_doors(parts) if answers else [],
            keys=Keys(database),
            tenant_of=Keys(database).tenant_called,
            counts=Allowances(database),
            known_of=vault.known,
            positions=Positions(database.position if settings.database_read_url else None),
            known_lately=vault.known_lately,
            idempotency=parts.idempotency,
            checks={"postgres": database.check, "model": parts.model.check},
            readings=[
                *(readings(parts) if answers else []),
                *(of_deriving(parts) if derives else []),
            ],
            registry=registry,
            auditor=auditor_of(settings, "ingest", AuditTable(database), registry),
            background=[
                parts.outbox.keep_clearing,
                *(_deriving(parts) if derives else [parts.model.keep_counting]),
            ],
        )


def _doors(parts: Parts) -> list[Route]:
    return [
        *routes(parts),
        *edit_routes.routes(parts),
        *import_routes.routes(parts),
        *admin_routes.routes(parts),
        *audit_routes.routes(parts),
        *link_routes.routes(parts),
        *task_routes.routes(parts),
        *event_routes.routes(parts),
        *claim_routes.routes(parts),
        *vault_routes(parts),
        *project_routes.routes(parts),
        *restore_routes.routes(parts),
        *review_routes.routes(parts),
        *adjust_routes.routes(parts),
    ]


def _deriving(parts: Parts) -> list[Background]:
    """What goes on by itself: no request waits for it, so a process of its own may do it."""
    return [
        parts.model.keep_loaded,
        partial(parts.enrichment.models.want_used, parts.model.want),
        partial(consume, parts.bus, INGEST_ENRICH, partial(on_remembered, parts), IN_HAND, AT_ONCE),
        partial(relay, parts.bus, parts.outbox, grace=parts.settings.outbox_grace),
        partial(consume, parts.bus, DEAD_WATCH, partial(rescue, parts.bus)),
        partial(keep_time, parts),
        partial(keep_scrubbing, parts),
        partial(keep_choosing, parts),
    ]


def ledger_of(settings: Settings, database: Database) -> LlmLedger:
    """What tenants may ask of a language model by the settings."""
    return LlmLedger(database, settings.llm_calls_a_day, settings.llm_tokens_a_day)
