"""Recall, wired: the gateway that agents talk to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from prometheus_client import CollectorRegistry, Counter

from reverie.inference.asking import language_endpoint
from reverie.inference.endpoint import endpoint_of
from reverie.inference.language import open_language
from reverie.inference.meters import ModelMeters
from reverie.inference.rerank import EndpointReranker, LocalReranker, Reranker
from reverie.inference.slot import ModelSlot
from reverie.recall import (
    context_routes,
    export_routes,
    graph_routes,
    mcp_routes,
    model_routes,
    openapi_routes,
    past_routes,
    preflow_routes,
    rpc,
    session_routes,
    skill_routes,
    trace_routes,
)
from reverie.recall.gate import Gate
from reverie.recall.meters import RecallMeters
from reverie.recall.parts import Parts
from reverie.recall.positions import Written
from reverie.recall.recorder import Recorder
from reverie.recall.rephrase import Rephraser
from reverie.recall.routes import forwards, routes
from reverie.recall.settings import recall_settings
from reverie.recall.use import UseNotes
from reverie.runtime.audit import auditor_of
from reverie.runtime.call_meters import CallMeters
from reverie.runtime.client_meters import ClientMeters
from reverie.runtime.logs import hide
from reverie.runtime.machine import memory_bytes
from reverie.runtime.metrics import new_registry
from reverie.runtime.needs import required, secret_text
from reverie.runtime.positions import Positions
from reverie.runtime.service import Service
from reverie.runtime.settings import Settings
from reverie.store.active_sets import ActiveSets
from reverie.store.audit import AuditTable
from reverie.store.briefing import Briefings
from reverie.store.carry import Carry
from reverie.store.database import open_database
from reverie.store.edits import Edits
from reverie.store.graph import Graph
from reverie.store.idempotency import IdempotencyTable
from reverie.store.keys import Keys
from reverie.store.llm import LlmLedger
from reverie.store.memories import Memories
from reverie.store.meters import Allowances
from reverie.store.models import Models
from reverie.store.notes import Notes
from reverie.store.past import Past
from reverie.store.replica import ReplicaSpec
from reverie.store.sealing import sealer_of
from reverie.store.search import Search
from reverie.store.sessions import Sessions
from reverie.store.short_ids import ShortIds
from reverie.store.tasks import Tasks
from reverie.store.traces import Traces
from reverie.store.uses import Uses
from reverie.store.vault import Vault

VECTORS, WORDS = 1 / 16, 1 / 64
"""The shares of the memory there is that what is kept of tenants may take."""


@asynccontextmanager
async def open_service(settings: Settings) -> AsyncIterator[Service]:
    """Reads are answered here; writes are passed on. It needs no bus."""
    registry = new_registry()
    async with (
        open_database(
            required(settings.database_url, "database_url"),
            settings.pool_max,
            min_size=settings.pool_min,
            registry=registry,
            readers=settings.pool_max,
            replica=_replica(settings, registry),
            reader_url=secret_text(settings.reader_database_url),
        ) as database,
        _reranker(settings) as reranker,
        open_language(
            language_endpoint(settings) if settings.rephrase_seconds else None,
            LlmLedger(database, settings.llm_calls_a_day, settings.llm_tokens_a_day),
            registry,
        ) as language,
    ):
        own = recall_settings(settings)
        vault = Vault(database, sealer_of(secret_text(settings.vault_key)), hide)
        traces = Traces(database)
        gate = Gate(own.parallel, own.queue, own.seconds)
        clients = ClientMeters(registry)
        models = ModelMeters(registry)
        protocol = mcp_routes.Protocol(
            settings.request_timeout, CallMeters(registry, "mcp"), clients
        )
        parts = Parts(
            settings=own,
            model=ModelSlot(
                settings.model,
                settings.home,
                settings.model_dir,
                settings.embed_threads,
                settings.model_pull,
                settings.recall_sparse,
                endpoint_of(settings.model_url, settings.model_dims, settings.model_key),
                meters=models,
                cached=settings.embed_cached,
            ),
            memories=Memories(database),
            edits=Edits(database),
            past=Past(database),
            search=Search(
                database,
                kept_mb(settings.recall_vectors_mb, VECTORS),
                kept_mb(settings.recall_words_mb, WORDS),
            ),
            models=Models(database),
            sessions=Sessions(database),
            ids=ShortIds(database),
            briefings=Briefings(database),
            carry=Carry(database),
            notes=Notes(database),
            graph=Graph(database),
            tasks=Tasks(database),
            used=UseNotes(Uses(database)),
            active_sets=ActiveSets(database),
            gate=gate,
            meters=RecallMeters(registry, gate),
            traces=traces,
            recorder=Recorder(traces, vault.known, own.traces_kept, registry),
            reranker=reranker,
            rephraser=Rephraser(language, vault.known) if language else None,
            other_models=[*model_routes.other_models(settings)],
        )
        if isinstance(reranker, LocalReranker):
            reranker.count_by(models)
        yield Service(
            name="recall",
            port=settings.recall_port,
            routes=[
                *routes(parts),
                *context_routes.routes(parts),
                *export_routes.routes(parts),
                *graph_routes.routes(parts),
                *mcp_routes.routes(protocol, settings.body_limit),
                *model_routes.routes(parts),
                *openapi_routes.routes(),
                *past_routes.routes(parts),
                *preflow_routes.routes(parts),
                *session_routes.routes(parts),
                *skill_routes.routes(parts),
                *trace_routes.routes(parts),
            ],
            forwards=forwards(parts),
            keys=Keys(database),
            tenant_of=Keys(database).tenant_called,
            counts=Allowances(database),
            idempotency=IdempotencyTable(database),
            checks={"postgres": database.check, "model": parts.model.check},
            background=[
                parts.model.keep_loaded,
                partial(parts.models.want_used, parts.model.want),
                parts.search.near.keep_reading,
                parts.search.worded.keep_reading,
                parts.recorder.keep_writing,
                parts.used.keep_writing,
                protocol.keep_open,
            ],
            registry=registry,
            auditor=auditor_of(settings, "recall", AuditTable(database), registry),
            positions=_positions(settings),
            client_meters=clients,
            doors=[rpc.door(settings, CallMeters(registry, "grpc"), clients)]
            if settings.grpc
            else [],
        )


def kept_mb(told: int | None, share: float) -> int:
    """Megabytes, as told or that share of the memory there is."""
    return int(memory_bytes() * share / 1_000_000) if told is None else told


def _replica(settings: Settings, registry: CollectorRegistry) -> ReplicaSpec | None:
    url = secret_text(settings.database_read_url)
    if url is None:
        return None
    reads = Counter(
        "reverie_replica_reads",
        "Reads by the server that answered: the replica, or the primary in its place.",
        ["server"],
        registry=registry,
    )

    def told(usable: bool) -> None:
        reads.labels("replica" if usable else "primary").inc()

    return ReplicaSpec(url, settings.replica_seconds, settings.replica_lag_seconds, told)


def _positions(settings: Settings) -> Positions:
    if settings.database_read_url is None:
        return Positions()
    written = Written(settings.replica_lag_seconds)
    return Positions(heed=written.heed, note=written.note)


@asynccontextmanager
async def _reranker(settings: Settings) -> AsyncIterator[Reranker | None]:
    reranker: Reranker
    if settings.rerank_dir is not None:
        reranker = await asyncio.to_thread(
            LocalReranker, settings.rerank_dir, settings.embed_threads
        )
    elif settings.rerank_url is not None:
        key = settings.rerank_key.get_secret_value() if settings.rerank_key else None
        reranker = EndpointReranker(str(settings.rerank_url), settings.rerank_model, key)
    else:
        yield None
        return
    try:
        yield reranker
    finally:
        await reranker.close()
