"""Routes that list recall traces and show one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from reverie.contracts.recall import TraceCandidate, TraceDetail, TracePage, TraceSummary
from reverie.domain.access.principals import Principal
from reverie.domain.core.memory import Memory
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import IdCursor, PageQuery, cut_page
from reverie.runtime.http.routes import Route
from reverie.store.search.recall_traces import RecallTraceRecord
from reverie_services.recall.dependencies import TraceDependencies
from reverie_services.recall.pipeline.recall_trace import decode_trace

LABEL_CHARS = 120


class TraceQuery(PageQuery):
    """Filters of `GET /v1/traces`."""

    session: UUID | None = None


def build_trace_routes(deps: TraceDependencies) -> list[Route]:
    """The routes of traces."""
    return [
        Route(
            "GET",
            "/v1/traces",
            partial(list_traces, deps),
            query=TraceQuery,
            response=TracePage,
            summary="List recalls, newest first",
        ),
        Route(
            "GET",
            "/v1/traces/{id}",
            partial(get_trace, deps),
            response=TraceDetail,
            summary="Explain a recall, by its trace_id or its own id",
        ),
    ]


async def list_traces(deps: TraceDependencies, call: Call[None, TraceQuery]) -> TracePage:
    """`GET /v1/traces`."""
    query = call.query
    await deps.trace_writer.flush()
    rows = await deps.traces.page(call.principal, query.before_id(), query.limit + 1, query.session)
    items, next_cursor = cut_page(rows, query.limit, lambda trace: IdCursor(id=trace.id))
    return TracePage(
        items=[TraceSummary(**_build_head(trace)) for trace in items], next=next_cursor
    )


async def get_trace(deps: TraceDependencies, call: Call[None, None]) -> TraceDetail:
    """`GET /v1/traces/{id}`."""
    principal = call.principal
    await deps.trace_writer.flush()
    trace_id = await deps.short_ids.resolve(principal, "trace", call.path["id"])
    trace, *others = await deps.traces.find(principal, trace_id)
    body = TraceDetail(
        **_build_head(trace),
        **decode_trace(trace.details),
        related_traces=[other.id for other in others],
    )
    body.candidates = await _filter_readable(deps, principal, body.candidates)
    return body


async def _filter_readable(
    deps: TraceDependencies, principal: Principal, candidates: list[TraceCandidate]
) -> list[TraceCandidate]:
    """Keeps the readable candidates, and their references to other readable memories."""
    ids = {candidate.id for candidate in candidates} | {
        hop.source for candidate in candidates for hop in candidate.hops
    }
    ids |= {candidate.rejected_for for candidate in candidates if candidate.rejected_for}
    memories = await deps.search.load_memories(principal, list(ids), principal.reads)
    return [
        _describe_candidate(candidate, memories)
        for candidate in candidates
        if candidate.type == "turn" or candidate.id in memories
    ]


def _describe_candidate(
    candidate: TraceCandidate, memories: Mapping[UUID, Memory]
) -> TraceCandidate:
    candidate.hops = [hop for hop in candidate.hops if hop.source in memories]
    candidate.rejected_for = candidate.rejected_for if candidate.rejected_for in memories else None
    memory = memories.get(candidate.id)
    if memory is not None:
        candidate.kind, candidate.scope, candidate.status = (
            memory.kind.value,
            memory.scope,
            memory.status.value,
        )
        candidate.label = " ".join((memory.summary or memory.content).split())[:LABEL_CHARS]
    return candidate


def _build_head(trace: RecallTraceRecord) -> dict[str, Any]:
    return {
        "id": trace.id,
        "trace_id": trace.trace.hex if trace.trace else None,
        "at": trace.at,
        "actor": trace.actor,
        "session": trace.session,
        "agent": trace.agent,
        "scopes": list(trace.scopes),
        "query": trace.query,
        **trace.asked,
    }
