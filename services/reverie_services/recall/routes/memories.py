"""Routes for recall, memories and turns, and the routes proxied to other services."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import Name, Tag, Timestamp
from reverie.contracts.memories import MemoryDetail, MemoryPage, build_memory_body
from reverie.contracts.recall import RecallRequest, RecallResponse
from reverie.contracts.sessions import TurnPage
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import parse_scope
from reverie.domain.context.open_files import normalize_paths
from reverie.domain.core.errors import InvalidInput, PayloadTooLarge, field_context
from reverie.domain.core.kinds import Kind, parse_kind
from reverie.domain.core.memory import Memory, MemoryStatus
from reverie.domain.text.index_terms import query_text
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.pagination import (
    CursorPosition,
    IdCursor,
    PageQuery,
    ScopedQuery,
    cut_page,
    decode_cursor,
)
from reverie.runtime.http.reverse_proxy import ProxyRoute
from reverie.runtime.http.routes import Route
from reverie.runtime.http.validation import QueryParams
from reverie.store.memories.memories import VISIBLE_STATUSES, ListFilter
from reverie.store.search.search import SearchFilter
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.recall.dependencies import RecallDependencies
from reverie_services.recall.pipeline.recall_result import RecallQuestion
from reverie_services.recall.pipeline.recall_trace import recall_with_trace
from reverie_services.recall.pipeline.visible_scopes import (
    find_session,
    resolve_project_scopes,
    resolve_scopes,
)
from reverie_services.recall.routes.response_bodies import (
    build_edge_body,
    build_memory_detail,
    build_recall_hit,
    build_turn_body,
)


class AsOfQuery(QueryParams):
    """A moment in the past: what was known then is answered."""

    as_of: Timestamp | None = None


class MemoryListQuery(ScopedQuery):
    """Filters of `GET /v1/memories`; `valid_at`: what was true then."""

    valid_at: Timestamp | None = None

    kind: list[Name] | None = None
    status: list[MemoryStatus] | None = None
    tag: Tag | None = None
    key: Name | None = None
    session: UUID | None = None


class TurnCursor(CursorPosition):
    """A cursor of a list in the order of turns."""

    ord: Annotated[int, Field(ge=0, le=2**31 - 1)]


def build_memory_routes(deps: RecallDependencies) -> list[Route]:
    """The table of recall."""
    handlers = RecallHandlers(deps)
    return [
        Route(
            "POST",
            "/v1/recall",
            handlers.recall,
            RecallRequest,
            response=RecallResponse,
            read_only=True,
            summary="Find the memories that answer a question",
        ),
        Route(
            "GET",
            "/v1/memories",
            handlers.list_memories,
            query=MemoryListQuery,
            response=MemoryPage,
            summary="List memories, newest first",
        ),
        Route(
            "GET",
            "/v1/memories/{id}",
            handlers.get_memory,
            query=AsOfQuery,
            response=MemoryDetail,
            supports_etag=True,
            summary="One memory with its neighbours; the id may be short",
        ),
        Route(
            "GET",
            "/v1/sessions/{id}/turns",
            handlers.list_turns,
            query=PageQuery,
            response=TurnPage,
            summary="The turns of a session, in order",
        ),
    ]


def build_proxy_routes(deps: RecallDependencies) -> list[ProxyRoute]:
    """What the gateway passes on, so that an agent needs one address."""
    settings = deps.settings
    to_ingest = (
        "/v1/admin",
        "/v1/claims",
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
    to_dream = ("/v1/dream", "/v1/dreams")
    to_staleness = ("/v1/stale",)
    return [
        *(ProxyRoute(prefix, "ingest", settings.ingest_url) for prefix in to_ingest),
        ProxyRoute("/v1/events", "ingest", settings.ingest_url, endless=True),
        ProxyRoute(
            "/v1/import",
            "ingest",
            settings.ingest_url,
            settings.import_limit,
            settings.transfer_timeout,
        ),
        ProxyRoute(
            "/v1/git",
            "staleness",
            settings.staleness_url,
            body_limit=settings.git_limit,
            body_limit_setting="git_limit",
        ),
        *(ProxyRoute(prefix, "dream", settings.dream_url) for prefix in to_dream),
        *(ProxyRoute(prefix, "staleness", settings.staleness_url) for prefix in to_staleness),
    ]


class RecallHandlers:
    """The handlers, around the parts of the service."""

    def __init__(self, deps: RecallDependencies) -> None:
        self._deps = deps

    async def recall(self, call: Call[RecallRequest, None]) -> RecallResponse:
        """`POST /v1/recall`."""
        principal, body = call.principal, call.body
        session, missing = await find_session(self._deps, principal, body.session)
        question = self._build_question(principal, body, session)
        if missing:
            question = replace(question, search_filter=replace(question.search_filter, scopes=[]))
        result = await recall_with_trace(self._deps, principal, question, body.session)
        degraded = [*result.degraded, *missing]
        self._deps.metrics.observe_read("recall", degraded)
        if body.as_of is None:
            used_ids = [hit.item.id for hit in result.hits if isinstance(hit.item, Memory)]
            self._deps.usage_writer.add(principal, body.session, used_ids)
        query_words = query_text(body.query)
        return RecallResponse(
            memories=[build_recall_hit(hit, query_words) for hit in result.hits],
            edges=[build_edge_body(edge) for edge in result.edges],
            search_mode=_determine_search_mode(result.degraded, is_current=question.as_of is None),
            degraded=degraded,
            tokens=result.tokens,
            intent=result.explanation.parsed_question.intent.value,
            trace_id=call.trace_id,
        )

    def _build_question(
        self, principal: Principal, body: RecallRequest, session: SessionRecord | None
    ) -> RecallQuestion:
        size = len(body.query.encode())
        if size > self._deps.settings.content_limit:
            raise PayloadTooLarge("query", size, self._deps.settings.content_limit, "content_limit")
        status = [*VISIBLE_STATUSES, *(["archived"] if "archived" in body.include else [])]
        kinds = _parse_each("kinds", _normalize_kind, body.kinds) if body.kinds else None
        scopes = resolve_scopes(principal, _parse_requested_scopes(principal, body), session)
        return RecallQuestion(
            text=body.query,
            search_filter=_build_filter(body, scopes, status, kinds),
            limit=body.limit,
            budget_tokens=body.budget_tokens,
            depth=body.depth,
            include_turns="turns" in body.include,
            agent=session.agent if session else principal.agent,
            min_confidence=body.min_confidence,
            as_of=body.as_of,
        )

    async def list_memories(self, call: Call[None, MemoryListQuery]) -> MemoryPage:
        """`GET /v1/memories`."""
        principal, query = call.principal, call.query
        list_filter = ListFilter(
            scope=query.readable_scope(principal),
            kinds=[parse_kind(kind).value for kind in query.kind] if query.kind else None,
            status=[_check_listable(status) for status in query.status]
            if query.status
            else VISIBLE_STATUSES,
            tag=query.tag,
            key=query.key,
            session=query.session,
            valid_at=query.valid_at,
        )
        rows = await self._deps.memories.page(
            principal, query.before_id(), query.limit + 1, list_filter
        )
        items, next_cursor = cut_page(rows, query.limit, lambda memory: IdCursor(id=memory.id))
        half_lives = self._deps.settings.half_lives
        return MemoryPage(
            items=[build_memory_body(item, half_lives) for item in items], next=next_cursor
        )

    async def get_memory(self, call: Call[None, AsOfQuery]) -> Reply:
        """`GET /v1/memories/{id}`."""
        principal = call.principal
        if call.query.as_of:
            return await self._get_memory_as_of(principal, call.path["id"], call.query.as_of)
        requested_id = await self._deps.memories.find_id(principal, call.path["id"])
        memory, neighbours = await self._deps.memories.get_with_neighbours(principal, requested_id)
        task_status = None
        if memory.kind is Kind.TASK:
            task_status = await self._deps.tasks.get_status(principal, memory.id)
        body = build_memory_detail(memory, neighbours, self._deps.settings.half_lives, task_status)
        headers = {"ETag": f'"{memory.version}"'}
        if memory.id != requested_id:
            body.merged_from = requested_id
            headers["Content-Location"] = f"/v1/memories/{memory.id}"
        return Reply(body=body, headers=headers)

    async def _get_memory_as_of(self, principal: Principal, id_text: str, at: datetime) -> Reply:
        """What was known of a memory at `at`; it has no ETag, for it cannot be edited."""
        history = self._deps.history
        requested_id = await history.find_id(principal, id_text, at)
        memory = await history.get(
            principal, await history.resolve(principal, str(requested_id), at), at
        )
        neighbours = await history.load_neighbours(principal, memory.id, at)
        task_status = None
        if memory.kind is Kind.TASK:
            task_status = await self._deps.tasks.get_status(principal, memory.id, at)
        body = build_memory_detail(
            memory, neighbours, self._deps.settings.half_lives, task_status, at
        )
        body.merged_from = requested_id if requested_id != memory.id else None
        return Reply(body=body)

    async def list_turns(self, call: Call[None, PageQuery]) -> TurnPage:
        """`GET /v1/sessions/{id}/turns`."""
        principal, query = call.principal, call.query
        session_id = await self._deps.short_ids.resolve(principal, "session", call.path["id"])
        session = await self._deps.sessions.get(principal, session_id)
        after = decode_cursor(query.cursor, TurnCursor)
        rows = await self._deps.sessions.list_turns(
            principal, session.id, after.ord if after else -1, query.limit + 1
        )
        items, next_cursor = cut_page(rows, query.limit, lambda turn: TurnCursor(ord=turn.ord))
        return TurnPage(items=[build_turn_body(item) for item in items], next=next_cursor)


def _parse_requested_scopes(principal: Principal, body: RecallRequest) -> list[str] | None:
    """The scopes, or those of the project, that the body names; None where it names none."""
    if body.project is None:
        return None if body.scopes is None else _parse_each("scopes", parse_scope, body.scopes)
    if body.scopes is not None or body.session is not None:
        raise InvalidInput("project", "give a project, scopes or a session, not several of them")
    return resolve_project_scopes(principal, body.project)


def _build_filter(
    body: RecallRequest, scopes: list[str], status: list[str], kinds: list[str] | None
) -> SearchFilter:
    if body.files and body.as_of:
        raise InvalidInput("files", "cannot be asked together with as_of: leave one of them out")
    return SearchFilter(
        scopes,
        status,
        kinds,
        tiers=body.tiers and [tier.value for tier in body.tiers],
        tags=body.tags,
        files=normalize_paths(body.files or []) or body.files,
        since=body.since,
        until=body.until,
        valid_at=body.valid_at,
    )


def _normalize_kind(name: str) -> str:
    return parse_kind(name).value


def _parse_each(field: str, parse: Callable[[str], str], values: Sequence[str]) -> list[str]:
    """Every value parsed; raises `InvalidInput` naming the place of the first wrong one."""
    parsed = []
    for index, value in enumerate(values):
        with field_context(f"{field}.{index}"):
            parsed.append(parse(value))
    return parsed


def _determine_search_mode(degraded: list[str], is_current: bool) -> str:
    """Which arms answered: hybrid, words, meaning or none; of the past words alone can."""
    expected = ("words", "meaning") if is_current else ("words",)
    available = [arm for arm in expected if arm not in degraded and "store" not in degraded]
    return "hybrid" if len(available) == 2 else (available[0] if available else "none")


def _check_listable(status: MemoryStatus) -> str:
    if status is MemoryStatus.DELETED:
        raise InvalidInput("status", "forgotten memories are not listed")
    return status.value
