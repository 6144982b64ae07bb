"""Routes that take a git change and list stale memories."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime

from reverie.contracts.base import Name, NonBlankStr
from reverie.contracts.memories.git import (
    ChangeBacklogBody,
    GitChange,
    GitChangeResponse,
    StaleEvidence,
    StaleMemoryBody,
    StalePage,
)
from reverie.contracts.memories.memories import build_memory_body
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import parse_scope, project_of_scope, slugify
from reverie.domain.context.text_rendering import render_staleness_warning
from reverie.domain.core.confidence import DecayPolicy
from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.kinds import Kind
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import IdCursor, PageQuery, cut_page
from reverie.runtime.http.routes import RouteTable
from reverie.store.staleness.git_changes import StaleMemory
from reverie_services.staleness.change_intake import store_change
from reverie_services.staleness.dependencies import StalenessDependencies


class StaleQuery(PageQuery):
    """Filters of `GET /v1/stale`: a project with all in it, or one scope."""

    project: Name | None = None
    scope: NonBlankStr | None = None


routes = RouteTable[StalenessDependencies]()


@routes.add("POST /v1/git/changes", status=202)
async def receive_change(
    deps: StalenessDependencies, call: Call[GitChange, None]
) -> GitChangeResponse:
    """Announce a git change."""
    stored = await store_change(deps, call.principal, call.body)
    deps.publisher.publish_after_reply(call, call.principal.tenant, stored.events)
    return GitChangeResponse(event=stored.id, duplicate=stored.is_duplicate, hints=stored.hints)


@routes.add("GET /v1/stale")
async def list_stale(deps: StalenessDependencies, call: Call[None, StaleQuery]) -> StalePage:
    """List stale memories with their evidence."""
    principal, query = call.principal, call.query
    scopes = _resolve_scopes(principal, query)
    rows = await deps.changes.list_stale(principal, scopes, query.before_id(), query.limit + 1)
    items, next_cursor = cut_page(rows, query.limit, lambda item: IdCursor(id=item.memory.id))
    bodies = [_build_stale_item(item, deps.decay) for item in items]
    backlog = await deps.changes.find_backlog(principal, scopes)
    return StalePage(
        items=bodies,
        next=next_cursor,
        messages=_build_warnings(bodies),
        changes=ChangeBacklogBody.model_validate(backlog, from_attributes=True),
    )


def _resolve_scopes(principal: Principal, query: StaleQuery) -> list[str]:
    """Resolves the scopes to search: one scope, a project with all below it, or all readable."""
    project = slugify(query.project) if query.project else None
    if query.scope:
        scope = parse_scope(query.scope)
        if project and project_of_scope(scope) != project:
            raise InvalidInput("scope", f"does not lie in project {project}")
        principal.check_read([scope])
        return [scope]
    if project is None:
        return list(principal.reads)
    project_scope = f"project/{project}"
    principal.check_read([project_scope])
    return [
        pattern for pattern in (project_scope, f"{project_scope}/*") if principal.may_read(pattern)
    ]


def _build_stale_item(stale: StaleMemory, decay: DecayPolicy) -> StaleMemoryBody:
    grade = stale.memory.stale_grade
    assert grade is not None, "the list holds memories with open marks only"
    evidence = [StaleEvidence.model_validate(mark) for mark in stale.evidence]
    return StaleMemoryBody(
        memory=build_memory_body(stale.memory, decay),
        grade=grade,
        score=stale.memory.staleness,
        evidence=evidence,
    )


def _build_warnings(items: list[StaleMemoryBody]) -> list[str]:
    """A sentence for each file, the one that changed last first."""
    last_changes: dict[str, datetime] = {}
    kinds: defaultdict[str, Counter[Kind]] = defaultdict(Counter)
    for item in items:
        for path in {mark.path for mark in item.evidence}:
            kinds[path][Kind(item.memory.kind)] += 1
        for mark in item.evidence:
            last_changes[mark.path] = max(
                mark.committed_at, last_changes.get(mark.path, mark.committed_at)
            )
    now = datetime.now(UTC)
    ordered = sorted(last_changes.items(), key=lambda entry: (entry[1], entry[0]), reverse=True)
    return [
        render_staleness_warning(path, (now - at).total_seconds(), kinds[path])
        for path, at in ordered
    ]
