"""Route for what an agent should know before a turn."""

from __future__ import annotations

from reverie.contracts.context import PreflowItem, PreflowLayer, PreflowRequest, PreflowResponse
from reverie.domain.access.principals import Principal
from reverie.domain.context.active_set import ActiveSetEntry, ActiveSetLayer
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import check_size
from reverie_services.recall.dependencies import RecallDependencies
from reverie_services.recall.pipeline.preflow import (
    PreflowResult,
    build_empty_preflow,
    run_preflow,
)
from reverie_services.recall.pipeline.state import PreflowTurn
from reverie_services.recall.pipeline.visible_scopes import find_session, parse_scopes
from reverie_services.recall.routes.response_bodies import round_relevance, round_score

routes = RouteTable[RecallDependencies]()


@routes.add("POST /v1/preflow", read_only=True)
async def prepare_turn(
    deps: RecallDependencies, call: Call[PreflowRequest, None]
) -> PreflowResponse:
    """Get what is new for the next turn of a session."""
    principal, body = call.principal, call.body
    check_size("query", body.query, deps.pipeline.settings.content_limit, "content_limit")
    session, missing = await find_session(
        deps.sessions, principal, body.session, deps.pipeline.settings.arm_timeout
    )
    if session is None:
        empty_result = build_empty_preflow(deps.pipeline, body.query, body.budget_tokens, missing)
        deps.pipeline.metrics.observe_read("preflow", missing)
        return _build_answer(empty_result, principal, call.trace_id)
    turn = PreflowTurn(
        session,
        body.query,
        body.files,
        body.budget_tokens,
        body.compacted,
        body.include_seen,
        body.before,
        parse_scopes(body.scopes),
        body.edited,
        body.tests,
    )
    result = await run_preflow(deps, principal, turn)
    used_ids = [
        entry.id for entry in result.rendered.entries if entry.layer is ActiveSetLayer.ON_DEMAND
    ]
    deps.usage_writer.add(principal, session.id, used_ids)
    deps.pipeline.metrics.observe_read("preflow", result.degraded)
    return _build_answer(result, principal, call.trace_id)


def _build_answer(result: PreflowResult, principal: Principal, trace_id: str) -> PreflowResponse:
    return PreflowResponse(
        markdown=result.rendered.markdown,
        tokens=result.rendered.tokens,
        items=[_build_item(entry, principal) for entry in result.rendered.entries],
        active=[
            *(entry.id for entry in result.selection.entries if entry.memory),
            *result.seen_ids,
        ],
        layers={layer: _build_layer(result, layer) for layer in ActiveSetLayer},
        scopes=result.scopes,
        keywords=result.keywords,
        intent=result.parsed_question.intent.value,
        turn=result.turn_number,
        omitted=result.selection.omitted,
        degraded=result.degraded,
        trace_id=trace_id,
    )


def _build_layer(result: PreflowResult, layer: ActiveSetLayer) -> PreflowLayer:
    entries = [entry for entry in result.selection.entries if entry.layer is layer]
    return PreflowLayer(
        budget=result.selection.budgets.tokens_for(layer),
        tokens=result.selection.tokens[layer],
        items=len(entries),
        new=sum(entry.id in result.new_ids for entry in entries),
    )


def _build_item(entry: ActiveSetEntry, principal: Principal) -> PreflowItem:
    memory = entry.memory
    return PreflowItem(
        id=memory.id if memory else None,
        layer=entry.layer,
        reason=entry.reason,
        text=entry.text,
        scope=entry.scope,
        kind=memory.kind.value if memory else "summary",
        score=round_score(entry.weight, principal),
        staleness=memory.staleness if memory else 0.0,
        relevance=round_relevance(entry.relevance, principal),
    )
