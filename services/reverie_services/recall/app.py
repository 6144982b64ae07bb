"""Wires the recall service: the gateway that agents talk to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from prometheus_client import CollectorRegistry, Counter

from reverie.inference.llm_client import open_language_model
from reverie.inference.llm_endpoint import build_language_endpoint
from reverie.inference.model_manager import ModelManager
from reverie.inference.model_metrics import ModelMetrics
from reverie.inference.reranker import EndpointReranker, LocalReranker, Reranker
from reverie.runtime.http.audit import create_auditor
from reverie.runtime.http.read_your_writes import PositionHooks
from reverie.runtime.http.reverse_proxy import ProxyRoute
from reverie.runtime.limits.concurrency import ConcurrencyLimiter, ConcurrencyLimits
from reverie.runtime.observability.call_metrics import CallMetrics
from reverie.runtime.observability.logs import hide_secrets
from reverie.runtime.observability.metrics import create_registry
from reverie.runtime.process.system_resources import memory_bytes, trim_memory
from reverie.runtime.service import Service
from reverie.runtime.settings.field_types import require_secret, secret_text
from reverie.runtime.settings.settings import Settings
from reverie.store.db.database import open_database
from reverie.store.db.encryption import create_cipher
from reverie.store.db.idempotency import IdempotencyTable
from reverie.store.db.replica import ReplicaOptions
from reverie.store.db.short_ids import ShortIdResolver
from reverie.store.graph.graph import GraphStore
from reverie.store.graph.project_links import ProjectLinkStore
from reverie.store.memories.edits import EditStore
from reverie.store.memories.export_import import ExportImportStore, ScopeNoteStore
from reverie.store.memories.history import HistoryStore
from reverie.store.memories.memories import MemoryStore
from reverie.store.memories.pictures import PictureStore
from reverie.store.memories.tasks import TaskStore
from reverie.store.platform.api_keys import ApiKeyStore
from reverie.store.platform.audit import AuditTable
from reverie.store.platform.console_sessions import ConsoleSessionStore
from reverie.store.platform.quotas import LlmUsageStore, QuotaStore
from reverie.store.search.embedding_models import EmbeddingModelStore
from reverie.store.search.ranking_signals import UsageStore
from reverie.store.search.recall_index_cache import RecallIndexCache
from reverie.store.search.recall_traces import RecallTraceStore
from reverie.store.search.search import SearchStore
from reverie.store.sessions.active_memory_sets import ActiveMemorySetStore
from reverie.store.sessions.context import ContextStore
from reverie.store.sessions.sessions import SessionStore
from reverie.store.vault.vault import VaultStore
from reverie_services.compat.app import PREFIX as COMPAT_PREFIX
from reverie_services.compat.app import mount_compat
from reverie_services.console.app import PREFIX as CONSOLE_PREFIX
from reverie_services.console.app import mount_console
from reverie_services.recall.background_writers import TraceWriter, UsageWriter
from reverie_services.recall.dependencies import (
    ContextDependencies,
    ExportDependencies,
    GraphDependencies,
    MemoryDependencies,
    ModelDependencies,
    RecallDependencies,
    RecallPipelineDependencies,
    ReplayDependencies,
    SessionDependencies,
    TraceDependencies,
)
from reverie_services.recall.grpc import server as rpc
from reverie_services.recall.metrics import RecallMetrics
from reverie_services.recall.query_expansion import QueryExpander
from reverie_services.recall.routes import context, export, openapi, preflow, recall, replay, skills
from reverie_services.recall.routes import graph as graph_routes
from reverie_services.recall.routes import history as history_routes
from reverie_services.recall.routes import mcp as mcp_routes
from reverie_services.recall.routes import memories as memory_routes
from reverie_services.recall.routes import models as model_routes
from reverie_services.recall.routes import pictures as picture_routes
from reverie_services.recall.routes import predict as predict_routes
from reverie_services.recall.routes import projects as project_routes
from reverie_services.recall.routes import sessions as session_routes
from reverie_services.recall.routes import traces as trace_routes
from reverie_services.recall.settings import build_recall_settings
from reverie_services.recall.write_positions import WritePositions
from reverie_services.startup import build_model_manager

INDEX_SHARE = 5 / 64
"""The share of the machine's memory that recall indexes may take."""


@asynccontextmanager
async def open_service(
    settings: Settings, model_manager: ModelManager | None = None
) -> AsyncIterator[Service]:
    """Opens the gateway: it serves reads and forwards writes. It needs no bus.

    `model_manager`: the models, if another service of this process uses them too.
    """
    registry = create_registry()
    async with (
        open_database(
            require_secret(settings.database_url, "database_url"),
            settings.pool_max,
            registry=registry,
            reader_size=settings.pool_max,
            replica=_build_replica_options(settings, registry),
            reader_url=secret_text(settings.database_readonly_url),
        ) as database,
        _open_reranker(settings) as reranker,
        open_language_model(
            build_language_endpoint(settings) if settings.query_expansion_timeout else None,
            LlmUsageStore(database, settings.llm_daily_calls, settings.llm_daily_tokens),
            registry,
        ) as language_model,
    ):
        service_settings = build_recall_settings(settings)
        vault = VaultStore(database, create_cipher(secret_text(settings.vault_key)), hide_secrets)
        traces = RecallTraceStore(database)
        limiter = ConcurrencyLimiter(
            ConcurrencyLimits(
                service_settings.max_concurrent_recalls,
                service_settings.recall_queue_size,
                service_settings.timeout / 2,
            ),
            what="recalls",
        )
        model_metrics = ModelMetrics(registry)
        mcp_gateway = mcp_routes.McpGateway(settings.request_timeout, CallMetrics(registry, "mcp"))
        metrics = RecallMetrics(registry, limiter)
        model_manager = model_manager or build_model_manager(settings, settings.recall_sparse)
        model_manager.set_metrics(model_metrics)
        memories, sessions = MemoryStore(database), SessionStore(database)
        history, contexts = HistoryStore(database), ContextStore(database)
        embedding_models, short_ids = EmbeddingModelStore(database), ShortIdResolver(database)
        search = SearchStore(database)
        recall_indexes = RecallIndexCache(database, choose_index_mb(settings.recall_index_mb))
        positions = WritePositions(settings.replica_max_lag)
        usage_writer = UsageWriter(UsageStore(database, settings.decay_boost))
        trace_writer = TraceWriter(
            traces, vault.load_redactor, service_settings.max_traces, registry
        )
        pipeline_deps = RecallPipelineDependencies(
            settings=service_settings,
            model_manager=model_manager,
            embedding_models=embedding_models,
            search=search,
            recall_indexes=recall_indexes,
            history=history,
            limiter=limiter,
            metrics=metrics,
            trace_writer=trace_writer,
            reranker=reranker,
            query_expander=QueryExpander(language_model, vault.load_redactor)
            if language_model
            else None,
        )
        recall_deps = RecallDependencies(
            pipeline_deps,
            sessions,
            usage_writer,
            contexts,
            ActiveMemorySetStore(database),
            ProjectLinkStore(database),
        )
        context_deps = ContextDependencies(
            contexts,
            sessions,
            model_manager,
            metrics,
            timeout=service_settings.timeout,
            session_timeout=service_settings.arm_timeout,
        )
        memory_deps = MemoryDependencies(
            memories,
            EditStore(database),
            history,
            TaskStore(database),
            service_settings.decay,
        )
        if isinstance(reranker, LocalReranker):
            reranker.set_metrics(model_metrics)
        yield Service(
            name="recall",
            port=settings.recall_port,
            routes=[
                *recall.routes.bind(recall_deps),
                *memory_routes.routes.bind(memory_deps),
                *context.routes.bind(context_deps),
                *export.routes.bind(
                    export.ExportHandler(
                        ExportDependencies(
                            ExportImportStore(database),
                            ScopeNoteStore(database),
                            service_settings.max_concurrent_exports,
                            service_settings.export_timeout,
                        )
                    )
                ),
                *graph_routes.routes.bind(GraphDependencies(GraphStore(database), memories)),
                *mcp_routes.build_mcp_routes(mcp_gateway, settings.body_limit),
                *model_routes.routes.bind(
                    ModelDependencies(
                        model_manager,
                        embedding_models,
                        [*model_routes.list_shared_models(settings)],
                    )
                ),
                *openapi.build_openapi_routes(),
                *history_routes.routes.bind(memory_deps),
                *preflow.routes.bind(recall_deps),
                *picture_routes.routes.bind(
                    picture_routes.PictureReadDependencies(memories, PictureStore(database))
                ),
                *predict_routes.routes.bind(recall_deps),
                *project_routes.routes.bind(recall_deps),
                *session_routes.routes.bind(SessionDependencies(sessions, short_ids)),
                *replay.routes.bind(
                    ReplayDependencies(sessions, memories, traces, trace_writer, search, short_ids)
                ),
                *skills.routes.bind(memory_deps),
                *trace_routes.routes.bind(
                    TraceDependencies(traces, trace_writer, search, short_ids)
                ),
            ],
            proxy_routes=build_proxy_routes(settings),
            keys=ApiKeyStore(database),
            find_tenant=ApiKeyStore(database).find_tenant,
            quotas=QuotaStore(database),
            idempotency=IdempotencyTable(database),
            checks={"postgres": database.check, "model": model_manager.raise_while_first_loading},
            background=[
                model_manager.run,
                partial(embedding_models.preload_used, model_manager.request_loading),
                partial(recall_indexes.run, trim_memory),
                trace_writer.run,
                usage_writer.run,
                mcp_gateway.run,
            ],
            registry=registry,
            auditor=create_auditor(settings, "recall", AuditTable(database), registry),
            positions=PositionHooks(
                read_barrier=positions.read_barrier, record_position=positions.record
            )
            if settings.database_replica_url
            else PositionHooks(),
            mounts={
                COMPAT_PREFIX: mount_compat(settings.body_limit, settings.request_timeout),
                **(
                    {
                        CONSOLE_PREFIX: mount_console(
                            ConsoleSessionStore(database),
                            vault.load_redactor,
                            settings,
                            ApiKeyStore(database).find_tenant,
                        )
                    }
                    if settings.console_enabled
                    else {}
                ),
            },
            extra_servers=[rpc.create_server_opener(settings, CallMetrics(registry, "grpc"))]
            if settings.grpc_enabled
            else [],
        )


def build_proxy_routes(settings: Settings) -> list[ProxyRoute]:
    """The paths that are passed on, and to which service."""
    to_ingest = (
        "/v1/admin",
        "/v1/facts",
        "/v1/links",
        "/v1/memories/{id}",
        "/v1/projects",
        "/v1/remember",
        "/v1/reviews",
        "/v1/sessions",
        "/v1/tasks",
        "/v1/turns",
        "/v1/vault",
    )
    ingest_url, dream_url = settings.url_of("ingest"), settings.url_of("dream")
    staleness_url = settings.url_of("staleness")
    return [
        *_build_engine_routes(settings),
        *(ProxyRoute(prefix, "ingest", ingest_url) for prefix in to_ingest),
        ProxyRoute(
            "/v1/documents",
            "ingest",
            ingest_url,
            body_limit=settings.large_body_limit,
            body_limit_setting="large_body_limit",
        ),
        ProxyRoute(
            "/v1/memories/{id}/pictures",
            "ingest",
            ingest_url,
            body_limit=settings.large_body_limit,
            body_limit_setting="large_body_limit",
        ),
        ProxyRoute("/v1/events", "ingest", ingest_url, endless=True),
        ProxyRoute(
            "/v1/import",
            "ingest",
            ingest_url,
            settings.import_limit,
            settings.transfer_timeout,
            body_limit_setting="import_limit",
        ),
        ProxyRoute("/v1/dream", "dream", dream_url),
        ProxyRoute("/v1/dreams", "dream", dream_url),
        ProxyRoute("/v1/maintenance", "dream", dream_url),
        ProxyRoute("/v1/stale", "staleness", staleness_url),
        *(
            ProxyRoute(
                f"/v1/git/{forge}",
                "staleness",
                staleness_url,
                body_limit=settings.large_body_limit,
                body_limit_setting="large_body_limit",
                public=True,
            )
            for forge in ("github", "gitlab")
        ),
        ProxyRoute(
            "/v1/git",
            "staleness",
            staleness_url,
            body_limit=settings.large_body_limit,
            body_limit_setting="large_body_limit",
        ),
    ]


def _build_engine_routes(settings: Settings) -> list[ProxyRoute]:
    """The paths of the engine, which is optional."""
    if not settings.engine_enabled:
        return []
    url = settings.url_of("engine")
    return [
        ProxyRoute("/v1/agents", "engine", url),
        ProxyRoute(
            "/v1/groups",
            "engine",
            url,
            body_limit=settings.large_body_limit,
            body_limit_setting="large_body_limit",
        ),
        ProxyRoute("/v1/groups/{id}/events", "engine", url, endless=True),
    ]


def choose_index_mb(configured_mb: int | None) -> int:
    """The megabytes for recall indexes."""
    return int(memory_bytes() * INDEX_SHARE / 1_000_000) if configured_mb is None else configured_mb


def _build_replica_options(
    settings: Settings, registry: CollectorRegistry
) -> ReplicaOptions | None:
    url = secret_text(settings.database_replica_url)
    if url is None:
        return None
    reads = Counter(
        "reverie_replica_reads",
        "Reads by the server that answered: replica or primary.",
        ["server"],
        registry=registry,
    )

    def count_read(usable: bool) -> None:
        reads.labels("replica" if usable else "primary").inc()

    return ReplicaOptions(url, max_lag=settings.replica_max_lag, on_read=count_read)


@asynccontextmanager
async def _open_reranker(settings: Settings) -> AsyncIterator[Reranker | None]:
    reranker: Reranker
    if settings.rerank_model_dir is not None:
        reranker = await asyncio.to_thread(
            LocalReranker, settings.rerank_model_dir, settings.embedding_threads
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
