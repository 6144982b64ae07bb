"""Routes that remember memories, start and end sessions, and append turns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

from reverie.contracts.base import Problem
from reverie.contracts.dreams import DreamRequestStatus
from reverie.contracts.memories import (
    RememberBatchRequest,
    RememberBatchResponse,
    RememberRequest,
    RememberResponse,
)
from reverie.contracts.problems import problem_from_error
from reverie.contracts.sessions import (
    AppendTurnsRequest,
    AppendTurnsResponse,
    EndSessionRequest,
    EndSessionResponse,
    StartSessionRequest,
    StartSessionResponse,
)
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import (
    agent_levels,
    build_scope,
    default_read_scopes,
    display_names_at,
    home_levels,
    normalize_agent_name,
    project_of_scope,
    scope_matches,
    slugify,
)
from reverie.domain.context.active_set_entries import build_printed_entries
from reverie.domain.context.context_block import render_context_block
from reverie.domain.context.line_candidates import ContextInput
from reverie.domain.core.errors import NotFound, ReverieError, prefix_field
from reverie.domain.core.ids import new_id
from reverie.domain.core.memory import USE_VAULT_HINT, WriteOutcome, WriteResult
from reverie.domain.extraction.dream_runs import DEFAULT_THRESHOLDS
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.memory_fence import strip_fenced
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import Route
from reverie.runtime.http.validation import parse_value
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.memories.memories import build_events
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.ingest.dependencies import WriteDependencies
from reverie_services.ingest.settings import IngestSettings
from reverie_services.ingest.write.preparation import PreparedMemory, prepare_memory, prepare_turn

ScopedKey = tuple[str, str | None]
"""A scope and a key in it."""

WriteResults = Mapping[UUID, WriteResult | ReverieError]
"""The outcome of each memory, by its id."""


def build_write_routes(deps: WriteDependencies) -> list[Route]:
    """The routes of writes and sessions."""
    handlers = WriteHandlers(deps)
    return [
        Route(
            "POST",
            "/v1/remember",
            handlers.remember,
            RememberRequest,
            response=RememberResponse,
            status=201,
            count_new_memories=lambda _: 1,
            rechecks_secrets=True,
            summary="Store a memory",
        ),
        Route(
            "POST",
            "/v1/remember/batch",
            handlers.remember_batch,
            RememberBatchRequest,
            response=RememberBatchResponse,
            count_new_memories=lambda body: len(body.items),
            rechecks_secrets=True,
            summary="Store many memories; each succeeds or fails by itself",
        ),
        Route(
            "POST",
            "/v1/sessions/start",
            handlers.start_session,
            StartSessionRequest,
            response=StartSessionResponse,
            status=201,
            summary="Start or resume a session, and get its context",
        ),
        Route(
            "POST",
            "/v1/sessions/{id}/end",
            handlers.end_session,
            EndSessionRequest,
            response=EndSessionResponse,
            summary="End a session and request a dream",
        ),
        Route(
            "POST",
            "/v1/turns",
            handlers.append_turns,
            AppendTurnsRequest,
            response=AppendTurnsResponse,
            summary="Append turns of a conversation",
        ),
    ]


class WriteHandlers:
    """Handlers of remembering, sessions and turns."""

    def __init__(self, deps: WriteDependencies) -> None:
        self._deps = deps

    async def remember(self, call: Call[RememberRequest, None]) -> RememberResponse:
        """`POST /v1/remember`."""
        principal, session_id = call.principal, call.body.session
        session = await self._deps.sessions.get(principal, session_id) if session_id else None
        prepared = prepare_memory(call.body, principal, call.redactor, self._deps.settings, session)
        [result], vault_hints = await self._store(call, [prepared])
        if isinstance(result, ReverieError):
            raise result
        return _build_remembered_body(prepared, result, vault_hints)

    async def remember_batch(self, call: Call[RememberBatchRequest, None]) -> RememberBatchResponse:
        """`POST /v1/remember/batch`: what passes lands together, the rest says why not."""
        principal = call.principal
        parsed = [_parse_item(f"items.{n}", item) for n, item in enumerate(call.body.items)]
        bodies = [body for body in parsed if isinstance(body, RememberRequest)]
        sessions = await self._load_sessions(principal, bodies)
        prepared = [
            body
            if isinstance(body, ReverieError)
            else _prepare_item(
                body, call, self._deps.settings, sessions.get(body.session), f"items.{n}"
            )
            for n, body in enumerate(parsed)
        ]
        valid = [entry for entry in prepared if isinstance(entry, PreparedMemory)]
        results, vault_hints = await self._store(call, valid)
        results_by_id = dict(zip((entry.memory.id for entry in valid), results, strict=True))
        items = [
            _build_batch_item(index, entry, results_by_id, vault_hints, call.redactor)
            for index, entry in enumerate(prepared)
        ]
        return RememberBatchResponse(items=items)

    async def _store(
        self, call: Call[Any, None], prepared: Sequence[PreparedMemory]
    ) -> tuple[Sequence[WriteResult | ReverieError], dict[ScopedKey, str]]:
        """Stores the memories; returns their outcomes, and advice to use the vault for frequent
        keys.
        """
        principal, headers = call.principal, trace_headers()
        results = await self._deps.memories.remember(
            principal,
            [item.memory for item in prepared],
            headers,
            call.idempotency_key,
            secrets_epoch=call.redactor.secrets.epoch,
        )
        stored = [result for result in results if isinstance(result, WriteResult)]
        events = [event for result in stored for event in build_events(principal, result, headers)]
        self._deps.publisher.publish_after_reply(call, principal.tenant, events)
        superseded = {
            (item.memory.scope, item.memory.key)
            for item, result in zip(prepared, results, strict=True)
            if isinstance(result, WriteResult) and result.outcome is WriteOutcome.SUPERSEDED
        }
        if not superseded:
            return results, {}
        frequent_keys = await self._deps.vault.list_frequent_keys(
            principal, len(superseded), [(scope, key or "") for scope, key in superseded]
        )
        return results, {
            (key.scope, key.key): f"{key.key} was written {key.versions} times: {USE_VAULT_HINT}"
            for key in frequent_keys
        }

    async def _load_sessions(
        self, principal: Principal, bodies: Sequence[RememberRequest]
    ) -> dict[UUID | None, SessionRecord | ReverieError]:
        """Each session named, or why the key may not name it."""
        session_ids = dict.fromkeys(body.session for body in bodies if body.session)
        sessions: dict[UUID | None, SessionRecord | ReverieError] = {}
        for session_id in session_ids:
            try:
                sessions[session_id] = await self._deps.sessions.get(principal, session_id)
            except NotFound as error:
                sessions[session_id] = error
        return sessions

    async def start_session(self, call: Call[StartSessionRequest, None]) -> StartSessionResponse:
        """`POST /v1/sessions/start`."""
        principal, body = call.principal, _redact_names(call.body, call.redactor)
        agent = _resolve_agent(principal, body.agent)
        project = slugify(body.project) if body.project else principal.project
        branch = body.branch or None
        written_agent = body.agent if normalize_agent_name(body.agent) == agent else agent
        levels = home_levels(body.project or principal.project, written_agent, branch)
        scope = build_scope(levels)
        principal.check_write(scope)
        fields = {
            "external_id": body.external_id or None,
            "agent": agent,
            "user": slugify(body.user) if body.user else None,
            "project": project,
            "branch": branch,
        }
        user_names = display_names_at([("user", body.user)]) if body.user else {}
        names = {
            **display_names_at(levels),
            **display_names_at(agent_levels(written_agent)),
            **user_names,
        }
        if not body.include_context:
            await self._deps.scope_names.save(principal, names)
            session, session_scope = await self._deps.sessions.start(
                principal, new_id(), scope, fields, body.at
            )
            return StartSessionResponse(session=session, scope=session_scope, context="")
        load_briefing = partial(
            self._load_briefing, replace(principal, agent=agent), fields["user"]
        )
        # The briefing is read while the session is written: neither depends on the other.
        briefing_task = asyncio.create_task(load_briefing(scope))
        try:
            await self._deps.scope_names.save(principal, names)
            session, session_scope = await self._deps.sessions.start(
                principal, new_id(), scope, fields, body.at
            )
            briefing = await (
                briefing_task if session_scope == scope else load_briefing(session_scope)
            )
        finally:
            briefing_task.cancel()
        budgets = briefing.budgets.without_files()
        block = render_context_block(briefing, budgets, self._deps.model_manager.counter.count)
        if body.context_shown:
            printed = build_printed_entries((entry.memory, entry.text) for entry in block.entries)
            # Without this record, the next turns give some memories a second time: no failure.
            with suppress(ReverieError):
                await self._deps.active_memory_sets.record(
                    principal, session, printed, body.compacted
                )
        return StartSessionResponse(session=session, scope=session_scope, context=block.markdown)

    async def _load_briefing(
        self, session_principal: Principal, user: str | None, scope: str
    ) -> ContextInput:
        """Loads the briefing of a session in that scope."""
        scopes = session_principal.narrow_to_readable(
            default_read_scopes(scope, session_principal.agent, user)
        )
        return await self._deps.contexts.load(session_principal, scopes, project_of_scope(scope))

    async def end_session(self, call: Call[EndSessionRequest, None]) -> EndSessionResponse:
        """`POST /v1/sessions/{id}/end`."""
        principal = call.principal
        session_id = await self._deps.short_ids.resolve(principal, "session", call.path["id"])
        session = await self._deps.sessions.get(principal, session_id)
        principal.check_write(session.scope)
        redactor = call.redactor.within(session.scope)
        summary = redactor.redact(strip_fenced(call.body.summary or "").strip()).text or None
        scope, pending = await self._deps.sessions.end(principal, session.id, summary, call.body.at)
        if not pending:
            return EndSessionResponse(session=session.id, dream=None)
        return EndSessionResponse(
            session=session.id, dream=await self._request_dream(call, scope, "session end")
        )

    async def append_turns(self, call: Call[AppendTurnsRequest, None]) -> AppendTurnsResponse:
        """`POST /v1/turns`."""
        principal, settings = call.principal, self._deps.settings
        session = await self._deps.sessions.get(principal, call.body.session)
        principal.check_write(session.scope)
        redactor = call.redactor.within(session.scope)
        prepared = [
            prepare_turn(n, turn, redactor, settings, call.idempotency_key)
            for n, turn in enumerate(call.body.turns)
        ]
        appended = await self._deps.sessions.append(
            principal, session.id, [turn for turn, _ in prepared], DEFAULT_THRESHOLDS
        )
        if appended.due:
            await self._request_dream(call, appended.scope, appended.due)
        return AppendTurnsResponse(
            accepted=appended.accepted,
            duplicates=appended.duplicates,
            redactions=sum(count for _, count in prepared),
        )

    async def _request_dream(
        self, call: Call[Any, Any], scope: str, reason: str
    ) -> DreamRequestStatus:
        principal = call.principal
        status, ticket = await self._deps.dreams.request(
            principal.tenant, principal.tenant_name, scope, reason, trace_headers()
        )
        self._deps.publisher.publish_after_reply(call, principal.tenant, [ticket])
        return DreamRequestStatus(scope=scope, status=status)


def _redact_names(body: StartSessionRequest, redactor: Redactor) -> StartSessionRequest:
    """The same body without secrets in the names that it holds."""
    names = body.model_dump(include={"agent", "user", "project", "branch", "external_id"})
    redacted = {name: redactor.redact(text).text for name, text in names.items() if text}
    return body.model_copy(update=redacted)


def _resolve_agent(principal: Principal, requested: str) -> str:
    """The agent of a session: the key's own, or a sub-agent of it."""
    agent = normalize_agent_name(requested)
    return (
        agent
        if principal.agent is None or scope_matches(f"{principal.agent}/*", agent)
        else principal.agent
    )


def _parse_item(field_path: str, item: dict[str, Any]) -> RememberRequest | ReverieError:
    try:
        return parse_value(RememberRequest, item, field_path)
    except ReverieError as error:
        return error


def _prepare_item(
    body: RememberRequest,
    call: Call[Any, Any],
    settings: IngestSettings,
    session: SessionRecord | ReverieError | None,
    field_path: str,
) -> PreparedMemory | ReverieError:
    """Returns the memory to be written, or its problem, named below `field_path`."""
    if isinstance(session, ReverieError):
        return session
    try:
        return prepare_memory(body, call.principal, call.redactor, settings, session)
    except ReverieError as error:
        return prefix_field(field_path, error)


def _build_remembered_body(
    prepared: PreparedMemory, result: WriteResult, vault_hints: Mapping[ScopedKey, str]
) -> RememberResponse:
    scoped_key = prepared.memory.scope, prepared.memory.key
    notes = [*prepared.hints, *([vault_hints[scoped_key]] if scoped_key in vault_hints else [])]
    if result.outcome is WriteOutcome.DUPLICATE:
        notes.append("this was known; its confidence went up")
    return RememberResponse(
        id=result.id,
        status=result.outcome.value,
        version=result.version,
        redactions=prepared.redactions,
        hints=notes,
    )


def _build_batch_item(
    index: int,
    prepared: PreparedMemory | ReverieError,
    results: WriteResults,
    vault_hints: Mapping[ScopedKey, str],
    redactor: Redactor,
) -> RememberResponse | Problem:
    if isinstance(prepared, ReverieError):
        return problem_from_error(prepared, redactor)
    result = results[prepared.memory.id]
    if isinstance(result, ReverieError):
        return problem_from_error(prefix_field(f"items.{index}", result), redactor)
    return _build_remembered_body(prepared, result, vault_hints)
