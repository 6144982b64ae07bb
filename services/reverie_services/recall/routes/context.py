"""Route for the context block at session start."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import Name, NonBlankStr
from reverie.contracts.context import (
    BudgetWarning,
    ContextBudgetsBody,
    ContextEntry,
    ContextResponse,
    ContextSection,
    OmittedMemory,
)
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import parse_scope, project_of_scope, slugify
from reverie.domain.context.budgets import ContextBudgets
from reverie.domain.context.context_block import BlockEntry, ContextBlock, render_context_block
from reverie.domain.context.line_candidates import ContextInput, render_title
from reverie.domain.context.open_files import MAX_OPEN_FILES
from reverie.domain.core.errors import InvalidInput
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import QueryParams
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.context_warnings import log_nearly_full
from reverie_services.recall.dependencies import ContextDependencies
from reverie_services.recall.pipeline.visible_scopes import (
    find_session,
    or_none_if_unavailable,
    parse_scopes,
    resolve_project_scopes,
    resolve_scopes,
)

OpenFile = Annotated[str, Field(min_length=1, max_length=1024)]


class ContextQuery(QueryParams):
    """The subject of a context: a session, a project, or all that the key may read; `scopes` say
    what of it.

    `files`: the agent's open files. `budget_tokens`: another total, in the same proportions.
    """

    session: UUID | None = None
    project: Name | None = None
    scopes: list[NonBlankStr] | None = None
    files: list[OpenFile] | None = Field(default=None, max_length=MAX_OPEN_FILES)
    budget_tokens: Annotated[int, Field(ge=50, le=100_000)] | None = None
    format: Literal["json", "markdown"] = "json"


routes = RouteTable[ContextDependencies]()


@routes.add(
    "GET /v1/context",
    response=ContextResponse,
    response_examples={"text/markdown": "## What is known of shop\n"},
)
async def get_context(deps: ContextDependencies, call: Call[None, ContextQuery]) -> Reply:
    """Get the context block for a session start."""
    principal, query = call.principal, call.query
    requested_scopes = _parse_requested_scopes(principal, query)
    session, missing = await find_session(
        deps.sessions, principal, query.session, deps.session_timeout
    )
    scopes = [] if missing else resolve_scopes(principal, requested_scopes, session)
    project = _find_project(principal, query, session)
    files = query.files or []
    briefing_load = deps.contexts.load(principal, scopes, project, files)
    loaded = await or_none_if_unavailable(briefing_load, deps.timeout)
    briefing = loaded or ContextInput()
    degraded = missing if loaded else [*missing, "store"]
    deps.metrics.observe_read("context", degraded)
    budgets = briefing.budgets if files else briefing.budgets.without_files()
    if query.budget_tokens is not None:
        budgets = budgets.scale_to(query.budget_tokens)
    share_unused = query.budget_tokens is not None
    block = render_context_block(briefing, budgets, deps.model_manager.counter.count, share_unused)
    log_nearly_full(block, project)
    if query.format == "markdown":
        headers = {"Content-Type": "text/markdown; charset=utf-8"}
        if degraded:
            headers["Reverie-Degraded"] = ", ".join(degraded)
        return Reply(body=block.markdown.encode(), headers=headers)
    answer = _build_answer(block, briefing, budgets)
    return Reply(body=answer.model_copy(update={"degraded": degraded}))


def _parse_requested_scopes(principal: Principal, query: ContextQuery) -> list[str] | None:
    """Returns the scopes that the parameters name; None if they name none, or a session."""
    if query.project and (query.scopes or query.session):
        other = "scopes" if query.scopes else "session"
        raise InvalidInput(other, "give a project, or scopes or a session, not both")
    if query.project:
        return resolve_project_scopes(principal, query.project)
    return parse_scopes(query.scopes)


def _find_project(
    principal: Principal, query: ContextQuery, session: SessionRecord | None
) -> str | None:
    """The project whose budgets apply and whose files are meant; None if it is not one."""
    if query.project:
        return slugify(query.project)
    if session is not None:
        return project_of_scope(session.scope)
    projects = {project_of_scope(parse_scope(scope)) for scope in query.scopes or ()} - {None}
    if query.scopes is None:
        return principal.project
    return projects.pop() if len(projects) == 1 else None


def _build_answer(
    block: ContextBlock, briefing: ContextInput, budgets: ContextBudgets
) -> ContextResponse:
    return ContextResponse(
        markdown=block.markdown,
        tokens=block.tokens,
        memories=list(block.memory_ids),
        sections=[
            ContextSection(
                name=section.heading,
                part=section.sections[0].value,
                tokens=sum(entry.tokens for entry in block.entries if entry.placement == section),
                entries=[
                    _build_entry(entry) for entry in block.entries if entry.placement == section
                ],
            )
            for section in dict.fromkeys(entry.placement for entry in block.entries)
        ],
        budgets=ContextBudgetsBody(**vars(budgets), total=budgets.total),
        omitted=[
            OmittedMemory(
                id=item.memory.id,
                title=render_title(item.memory),
                kind=item.memory.kind.value,
                section=item.placement.heading,
                part=item.placement.sections[0].value,
                reason=item.reason,
            )
            for item in block.omitted
        ],
        truncated=briefing.has_more,
        warnings=[BudgetWarning(**vars(item), message=item.message) for item in block.warnings],
        summaries=dict(briefing.summaries),
    )


def _build_entry(entry: BlockEntry) -> ContextEntry:
    memory = entry.memory
    return ContextEntry(
        id=memory.id,
        kind=memory.kind.value,
        scope=memory.scope,
        key=memory.key,
        tokens=entry.tokens,
        pinned=memory.pinned,
        stale_grade=memory.stale_grade,
        stale_reason=memory.stale_reason,
        reason=entry.why,
    )
