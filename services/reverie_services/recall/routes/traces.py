"""Routes that list recall traces and show one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from reverie.contracts.recall import (
    DeliveryReceipt,
    TraceCandidate,
    TraceDetail,
    TracePage,
    TraceSummary,
)
from reverie.domain.access.principals import Principal
from reverie.domain.core.memory import Memory
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import IdCursor, PageQuery, cut_page
from reverie.runtime.http.routes import RouteTable
from reverie.store.search.recall_traces import RecallTraceRecord
from reverie_services.recall.dependencies import TraceDependencies
from reverie_services.recall.pipeline.recall_trace import decode_trace
from reverie_services.recall.routes.response_bodies import COARSE_DIGITS, round_relevance

LABEL_CHARS = 120


class TraceQuery(PageQuery):
    """Filters of `GET /v1/traces`."""

    session: UUID | None = None


routes = RouteTable[TraceDependencies]()


@routes.add("GET /v1/traces")
async def list_traces(deps: TraceDependencies, call: Call[None, TraceQuery]) -> TracePage:
    """List recalls, newest first."""
    query = call.query
    await deps.trace_writer.flush()
    rows = await deps.traces.page(call.principal, query.before_id(), query.limit + 1, query.session)
    items, next_cursor = cut_page(rows, query.limit, lambda trace: IdCursor(id=trace.id))
    return TracePage(
        items=[TraceSummary(**_build_head(trace)) for trace in items], next=next_cursor
    )


@routes.add("GET /v1/traces/{id}")
async def get_trace(deps: TraceDependencies, call: Call[None, None]) -> TraceDetail:
    """Explain a recall, by its trace_id or its own id."""
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
    delivered_ids = [delivery.id for delivery in body.deliveries]
    memories = await deps.search.load_memories(principal, delivered_ids, principal.reads)
    body.deliveries = [item for item in body.deliveries if item.id in memories]
    for delivery in body.deliveries:
        delivery.label = _label(memories[delivery.id])
    if not principal.reads_whole_tenant:
        _coarsen_scores(body.candidates)
        for delivery in body.deliveries:
            delivery.relevance = round_relevance(delivery.relevance, principal)
    return body


@routes.add("POST /v1/traces/{id}/delivery", read_only=True)
async def confirm_delivery(deps: TraceDependencies, call: Call[None, None]) -> DeliveryReceipt:
    """Confirm that a hook wrote out what a preflow gave."""
    await deps.trace_writer.flush()
    trace_id = await deps.short_ids.resolve(call.principal, "trace", call.path["id"])
    return DeliveryReceipt(delivered_at=await deps.traces.confirm(call.principal, trace_id))


def _coarsen_scores(candidates: list[TraceCandidate]) -> None:
    """Rounds all scores, and makes those of each arm relative to its best."""
    best: dict[str, float] = {}
    for candidate in candidates:
        for name, hit in candidate.arms.items():
            best[name] = max(best.get(name, 0.0), hit.score or 0.0)
    for candidate in candidates:
        for name, hit in candidate.arms.items():
            if hit.score is not None:
                hit.score = round(hit.score / (best[name] or 1.0), COARSE_DIGITS)
        for hop in candidate.hops:
            hop.contribution = round(hop.contribution, COARSE_DIGITS)
        candidate.factors = {
            name: round(factor, COARSE_DIGITS) for name, factor in candidate.factors.items()
        }
        candidate.score = round(candidate.score, COARSE_DIGITS)
        candidate.base = round(candidate.base, COARSE_DIGITS)
        candidate.fused = round(candidate.fused, COARSE_DIGITS)


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
        candidate.label = _label(memory)
    return candidate


def _label(memory: Memory) -> str:
    return " ".join((memory.summary or memory.content).split())[:LABEL_CHARS]


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
        "delivered_at": trace.delivered_at,
        **trace.asked,
    }
