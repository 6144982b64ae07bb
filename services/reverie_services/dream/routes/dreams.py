"""Routes that request and list dreams, and that run maintenance now."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reverie.contracts.dreams import (
    DreamDecision,
    DreamDetail,
    DreamInput,
    DreamPage,
    DreamRequest,
    DreamRequestStatus,
    DreamRun,
    MaintenanceResponse,
    UndigestedPage,
    UndigestedScope,
)
from reverie.domain.access.scopes import parse_scope
from reverie.domain.core.errors import Forbidden, InvalidInput
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import (
    CursorPosition,
    IdCursor,
    PageQuery,
    ScopedQuery,
    cut_page,
    decode_cursor,
)
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import QueryParams
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.maintenance.items import MaintenanceScope
from reverie.store.sessions.dream_queue import REASON_REQUESTED
from reverie.store.sessions.dream_runs import DreamRunRecord
from reverie_services.dream.dependencies import DreamRequestDependencies, MaintenanceDependencies
from reverie_services.dream.maintenance.run_maintenance import run_maintenance
from reverie_services.dream.maintenance.steps import preview_maintenance


class DecisionCursor(CursorPosition):
    """A cursor of the decisions of a run."""

    number: int


class PendingScopeCursor(CursorPosition):
    """A cursor of a list in the order of scopes."""

    scope: Annotated[str, Field(max_length=400)]


routes = RouteTable[DreamRequestDependencies]()


@routes.add("POST /v1/dream", status=202)
async def request_dream(
    deps: DreamRequestDependencies, call: Call[DreamRequest, None]
) -> DreamRequestStatus:
    """Request a dream over a scope, or over a session's scope."""
    principal, body = call.principal, call.body
    if body.scope and body.session:
        raise InvalidInput("scope", "give a scope or a session, not both")
    if body.session:
        scope = (await deps.sessions.get(principal, body.session)).scope
    else:
        scope = parse_scope(body.scope, call.redactor) if body.scope else principal.default_scope()
    principal.check_write(scope)
    status, ticket = await deps.dreams.request(
        principal.tenant, principal.tenant_name, scope, REASON_REQUESTED, trace_headers()
    )
    deps.publisher.publish_after_reply(call, principal.tenant, [ticket])
    return DreamRequestStatus(scope=scope, status=status)


@routes.add("GET /v1/dream")
async def list_pending(
    deps: DreamRequestDependencies, call: Call[None, ScopedQuery]
) -> UndigestedPage:
    """List undigested turns and requested dreams by scope."""
    principal, query = call.principal, call.query
    after = decode_cursor(query.cursor, PendingScopeCursor)
    rows = await deps.dream_runs.list_pending(
        principal,
        query.readable_scope(principal),
        after.scope if after else None,
        query.limit + 1,
    )
    items, next_cursor = cut_page(
        rows, query.limit, lambda item: PendingScopeCursor(scope=item.scope)
    )
    bodies = [UndigestedScope(**vars(item)) for item in items]
    return UndigestedPage(items=bodies, next=next_cursor)


@routes.add("GET /v1/dreams")
async def list_runs(deps: DreamRequestDependencies, call: Call[None, ScopedQuery]) -> DreamPage:
    """List dreams, newest first."""
    principal, query = call.principal, call.query
    rows = await deps.dream_runs.list_runs(
        principal, query.before_id(), query.readable_scope(principal), query.limit + 1
    )
    items, next_cursor = cut_page(rows, query.limit, lambda run: IdCursor(id=run.id))
    return DreamPage(items=[_build_run_body(run) for run in items], next=next_cursor)


@routes.add("GET /v1/dreams/{id}")
async def get_run(deps: DreamRequestDependencies, call: Call[None, PageQuery]) -> DreamDetail:
    """Get a dream: input, output and reasons."""
    principal, limit = call.principal, call.query.limit
    run_id = await deps.short_ids.resolve(principal, "dream", call.path["id"])
    run, inputs = await deps.dream_runs.get(principal, run_id)
    after = decode_cursor(call.query.cursor, DecisionCursor)
    rows = await deps.dream_runs.list_decisions(
        principal, run_id, after.number if after else 0, limit + 1
    )
    items, next_cursor = cut_page(rows, limit, lambda item: DecisionCursor(number=item.number))
    return DreamDetail(
        **_build_run_body(run).model_dump(),
        input=[DreamInput(**vars(item)) for item in inputs],
        decisions=[DreamDecision(**vars(item)) for item in items],
        next=next_cursor,
    )


def _build_run_body(run: DreamRunRecord) -> DreamRun:
    fields = {name: value for name, value in vars(run).items() if name not in ("started", "ended")}
    return DreamRun(**fields, started_at=run.started, ended_at=run.ended)


class MaintenanceQuery(QueryParams):
    """`steps`: run these only; `dry_run`: only count what would be archived or collected."""

    steps: list[Literal["archive", "collect"]] | None = None
    dry_run: bool = False


maintenance_routes = RouteTable[MaintenanceDependencies]()


@maintenance_routes.add("POST /v1/maintenance/run")
async def run_maintenance_now(
    deps: MaintenanceDependencies, call: Call[None, MaintenanceQuery]
) -> MaintenanceResponse:
    """Run maintenance in the scopes of the key."""
    principal, query, patterns = call.principal, call.query, call.principal.writable_patterns
    if not patterns:
        raise Forbidden("run maintenance", principal.default_scope())
    # Its readers must be able to read all that the run names.
    record_scope = patterns[0] if len(patterns) == 1 else "*"
    scope = MaintenanceScope(principal.tenant, principal.tenant_name, patterns, record_scope)
    if query.dry_run:
        return MaintenanceResponse(**await preview_maintenance(deps, scope))
    progress = await run_maintenance(deps, scope, query.steps or ())
    return MaintenanceResponse(**progress.counts, unfinished=progress.unfinished)
