"""Route for recall."""

from __future__ import annotations

from dataclasses import replace

from reverie.contracts.recall import RecallRequest, RecallResponse
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import project_of_scope, slugify
from reverie.domain.context.open_files import normalize_paths
from reverie.domain.core.errors import InvalidInput, field_context
from reverie.domain.core.kinds import parse_kind
from reverie.domain.core.memory import Memory
from reverie.domain.text.index_terms import query_text
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import check_size
from reverie.store.memories.memories import VISIBLE_STATUSES
from reverie.store.search.search import SearchFilter
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.recall.dependencies import RecallDependencies
from reverie_services.recall.pipeline.linked_projects import find_linked_scopes
from reverie_services.recall.pipeline.recall import recall_with_trace
from reverie_services.recall.pipeline.state import RecallQuestion
from reverie_services.recall.pipeline.visible_scopes import (
    find_session,
    parse_scopes,
    resolve_project_scopes,
    resolve_scopes,
)
from reverie_services.recall.routes.response_bodies import (
    build_edge_body,
    build_recall_hit,
    round_relevance,
)
from reverie_services.recall.settings import RecallSettings

routes = RouteTable[RecallDependencies]()


@routes.add("POST /v1/recall", read_only=True)
async def answer_recall(
    deps: RecallDependencies, call: Call[RecallRequest, None]
) -> RecallResponse:
    """Find the memories that answer a question."""
    principal, body, settings = call.principal, call.body, deps.pipeline.settings
    session, missing = await find_session(
        deps.sessions, principal, body.session, settings.arm_timeout
    )
    question = _build_question(principal, body, session, settings)
    linked, not_linked = await find_linked_scopes(
        deps.project_links, principal, _find_project(body, session), settings.arm_timeout
    )
    scopes = [] if missing else list(dict.fromkeys([*question.search_filter.scopes, *linked]))
    question = replace(question, search_filter=replace(question.search_filter, scopes=scopes))
    missing = [*missing, *not_linked]
    result = await recall_with_trace(deps.pipeline, principal, question, body.session)
    degraded = [*result.degraded, *missing]
    deps.pipeline.metrics.observe_read("recall", degraded)
    if body.as_of is None:
        used_ids = [hit.item.id for hit in result.hits if isinstance(hit.item, Memory)]
        deps.usage_writer.add(principal, body.session, used_ids)
    query_words = query_text(body.query)
    return RecallResponse(
        memories=[build_recall_hit(hit, query_words, principal, linked) for hit in result.hits],
        answered=result.is_answered(deps.pipeline.settings.relevance_threshold),
        relevance=round_relevance(result.relevance, principal),
        edges=[build_edge_body(edge) for edge in result.edges],
        search_mode=_determine_search_mode(
            result.degraded, question.as_of is None and deps.pipeline.model_manager.embeds
        ),
        degraded=degraded,
        tokens=result.tokens,
        intent=result.state.parsed_question.intent.value,
        trace_id=call.trace_id,
    )


def _build_question(
    principal: Principal,
    body: RecallRequest,
    session: SessionRecord | None,
    settings: RecallSettings,
) -> RecallQuestion:
    check_size("query", body.query, settings.content_limit, "content_limit")
    if body.files and body.as_of:
        raise InvalidInput("files", "cannot be asked together with as_of: leave one of them out")
    kinds = []
    for index, kind in enumerate(body.kinds or ()):
        with field_context(f"kinds.{index}"):
            kinds.append(parse_kind(kind).value)
    search_filter = SearchFilter(
        resolve_scopes(principal, _parse_requested_scopes(principal, body), session),
        [*VISIBLE_STATUSES, *(["archived"] if "archived" in body.include else [])],
        kinds or None,
        tiers=body.tiers and [tier.value for tier in body.tiers],
        tags=body.tags,
        files=normalize_paths(body.files or []) or body.files,
        since=body.since,
        until=body.until,
        valid_at=body.valid_at,
    )
    return RecallQuestion(
        text=body.query,
        search_filter=search_filter,
        limit=body.limit or settings.default_limit,
        budget_tokens=body.budget_tokens,
        depth=body.depth,
        include_turns="turns" in body.include,
        agent=session.agent if session else principal.agent,
        min_confidence=body.min_confidence,
        as_of=body.as_of,
    )


def _parse_requested_scopes(principal: Principal, body: RecallRequest) -> list[str] | None:
    """Returns the scopes of the body or of its project; None if it names neither."""
    if body.project is None:
        return parse_scopes(body.scopes)
    if body.scopes is not None or body.session is not None:
        raise InvalidInput("project", "give a project, scopes or a session, not several of them")
    return resolve_project_scopes(principal, body.project)


def _find_project(body: RecallRequest, session: SessionRecord | None) -> str | None:
    """The project whose linked projects are searched, too."""
    if body.scopes is not None or not body.linked_projects:
        return None
    if body.project is not None:
        return slugify(body.project)
    return project_of_scope(session.scope) if session else None


def _determine_search_mode(degraded: list[str], by_meaning: bool) -> str:
    """Returns the arms that answered: hybrid, words, meaning or none.

    Only words can search the past, or without embeddings.
    """
    expected = ("words", "meaning") if by_meaning else ("words",)
    available = [arm for arm in expected if arm not in degraded and "store" not in degraded]
    return "hybrid" if len(available) == 2 else (available[0] if available else "none")
