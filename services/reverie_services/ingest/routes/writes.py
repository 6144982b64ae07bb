"""Routes that remember memories, start and end sessions, and append turns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from reverie.contracts.base import Problem
from reverie.contracts.dreams import DreamRequestStatus
from reverie.contracts.events import BULK_HEADERS
from reverie.contracts.memories.memories import (
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
from reverie.domain.extraction.dream_log import DEFAULT_THRESHOLDS
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.memory_fence import strip_fenced
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import parse_value
from reverie.runtime.observability.tracing import trace_headers
from reverie.runtime.settings.settings import Settings
from reverie.store.graph.conflicts import ContradictedMemory
from reverie.store.memories.memories import build_events
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.context_warnings import log_nearly_full
from reverie_services.ingest.dependencies import WriteDependencies
from reverie_services.ingest.write.conflict_hints import add_conflicts, find_conflicts
from reverie_services.ingest.write.prepared_records import (
    PreparedMemory,
    prepare_memory,
    prepare_turn,
)
from reverie_services.ingest.write_bursts import CONFLICT_SEARCH_BYTES

ScopedKey = tuple[str, str | None]
"""A scope and a key in it."""


routes = RouteTable[WriteDependencies]()


@routes.add("POST /v1/remember", status=201, count_new_memories=lambda _: 1, rechecks_secrets=True)
async def remember(deps: WriteDependencies, call: Call[RememberRequest, None]) -> RememberResponse:
    """Store a memory."""
    principal, session_id = call.principal, call.body.session
    session = await deps.sessions.get(principal, session_id) if session_id else None
    prepared = prepare_memory(call.body, principal, call.redactor, deps.settings, session)
    waiting_bytes = deps.bursts.count_waiting_bytes(principal.tenant)
    is_burst = deps.bursts.is_burst(principal.tenant, prepared.memory.content)
    headers = trace_headers() | (BULK_HEADERS if is_burst else {})
    storing = _store(deps, call, [prepared], headers)
    conflicts: list[ContradictedMemory] = []
    if waiting_bytes >= CONFLICT_SEARCH_BYTES:
        # The search would take the processors from the writes.
        results, vault_hints = await storing
    else:
        searching = find_conflicts(deps.conflicts, principal, prepared.memory)
        (results, vault_hints), conflicts = await asyncio.gather(storing, searching)
    [result] = results
    if isinstance(result, ReverieError):
        raise result
    return add_conflicts(_build_remembered_body(prepared, result, vault_hints), conflicts)


@routes.add(
    "POST /v1/remember/batch",
    count_new_memories=lambda body: len(body.items),
    rechecks_secrets=True,
)
async def remember_batch(
    deps: WriteDependencies, call: Call[RememberBatchRequest, None]
) -> RememberBatchResponse:
    """Store many memories; each succeeds or fails by itself.

    What passes lands together, the rest says why not.
    """
    principal = call.principal
    parsed = [_parse_item(f"items.{n}", item) for n, item in enumerate(call.body.items)]
    bodies = [body for body in parsed if isinstance(body, RememberRequest)]
    sessions = await _load_sessions(deps, principal, bodies)
    prepared = [
        body
        if isinstance(body, ReverieError)
        else _prepare_item(body, call, deps.settings, sessions.get(body.session), f"items.{n}")
        for n, body in enumerate(parsed)
    ]
    valid = [entry for entry in prepared if isinstance(entry, PreparedMemory)]
    results, vault_hints = await _store(deps, call, valid, trace_headers() | BULK_HEADERS)
    results_by_id = dict(zip((entry.memory.id for entry in valid), results, strict=True))
    items = [
        _build_batch_item(index, entry, results_by_id, vault_hints, call.redactor)
        for index, entry in enumerate(prepared)
    ]
    return RememberBatchResponse(items=items)


async def _store(
    deps: WriteDependencies,
    call: Call[Any, None],
    prepared: Sequence[PreparedMemory],
    headers: Mapping[str, str],
) -> tuple[Sequence[WriteResult | ReverieError], dict[ScopedKey, str]]:
    """Stores the memories; returns their outcomes, and advice to use the vault for frequent
    keys.
    """
    principal = call.principal
    results = await deps.memories.remember(
        principal,
        [item.memory for item in prepared],
        headers,
        call.idempotency_key,
        secrets_epoch=call.redactor.secrets.epoch,
    )
    stored = [result for result in results if isinstance(result, WriteResult)]
    events = [event for result in stored for event in build_events(principal, result, headers)]
    deps.publisher.publish_after_reply(call, principal.tenant, events)
    superseded = {
        (item.memory.scope, item.memory.key)
        for item, result in zip(prepared, results, strict=True)
        if isinstance(result, WriteResult) and result.outcome is WriteOutcome.SUPERSEDED
    }
    if not superseded:
        return results, {}
    frequent_keys = await deps.vault.list_frequent_keys(
        principal, len(superseded), [(scope, key or "") for scope, key in superseded]
    )
    return results, {
        (key.scope, key.key): f"{key.key} was written {key.versions} times: {USE_VAULT_HINT}"
        for key in frequent_keys
    }


async def _load_sessions(
    deps: WriteDependencies, principal: Principal, bodies: Sequence[RememberRequest]
) -> dict[UUID | None, SessionRecord | ReverieError]:
    """Each session named, or why the key may not name it."""
    session_ids = dict.fromkeys(body.session for body in bodies if body.session)
    sessions: dict[UUID | None, SessionRecord | ReverieError] = {}
    for session_id in session_ids:
        try:
            sessions[session_id] = await deps.sessions.get(principal, session_id)
        except NotFound as error:
            sessions[session_id] = error
    return sessions


@routes.add("POST /v1/sessions/start", status=201)
async def start_session(
    deps: WriteDependencies, call: Call[StartSessionRequest, None]
) -> StartSessionResponse:
    """Start or resume a session, and get its context."""
    principal = call.principal
    named = {"user": principal.user or call.body.user or principal.acting_user}
    body = _redact_names(call.body.model_copy(update=named), call.redactor)
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
        "group": slugify(body.group) if body.group else None,
    }
    user_names = display_names_at([("user", body.user)]) if body.user else {}
    names = {
        **display_names_at(levels),
        **display_names_at(agent_levels(written_agent)),
        **user_names,
    }

    async def start() -> tuple[UUID, str]:
        await deps.scope_names.save(principal, names)
        return await deps.sessions.start(principal, new_id(), scope, fields, body.at)

    if not body.include_context:
        session, session_scope = await start()
        return StartSessionResponse(session=session, scope=session_scope, context="")
    reader = replace(principal, agent=agent)

    async def load_briefing(scope: str) -> ContextInput:
        visible = default_read_scopes(scope, agent, fields["user"], fields["group"])
        scopes = reader.narrow_to_readable(visible)
        return await deps.contexts.load(reader, scopes, project_of_scope(scope))

    # The briefing is read while the session is written: neither depends on the other.
    briefing_task = asyncio.create_task(load_briefing(scope))
    try:
        session, session_scope = await start()
        briefing = await (briefing_task if session_scope == scope else load_briefing(session_scope))
    finally:
        briefing_task.cancel()
    budgets = briefing.budgets.without_files()
    block = render_context_block(briefing, budgets, deps.model_manager.counter.count)
    log_nearly_full(block, project)
    if body.context_shown:
        printed = build_printed_entries((entry.memory, entry.text) for entry in block.entries)
        # Without this record, the next turns give some memories a second time: no failure.
        with suppress(ReverieError):
            await deps.active_memory_sets.record(principal, session, printed, body.compacted)
    return StartSessionResponse(session=session, scope=session_scope, context=block.markdown)


@routes.add("POST /v1/sessions/{id}/end")
async def end_session(
    deps: WriteDependencies, call: Call[EndSessionRequest, None]
) -> EndSessionResponse:
    """End a session and request a dream."""
    principal = call.principal
    session_id = await deps.short_ids.resolve(principal, "session", call.path["id"])
    session = await deps.sessions.get(principal, session_id)
    principal.check_write(session.scope)
    redactor = call.redactor.within(session.scope)
    summary = redactor.redact(strip_fenced(call.body.summary or "").strip()).text or None
    scope, pending = await deps.sessions.end(principal, session.id, summary, call.body.at)
    if not pending:
        return EndSessionResponse(session=session.id, dream=None)
    return EndSessionResponse(
        session=session.id, dream=await _request_dream(deps, call, scope, "session end")
    )


@routes.add("POST /v1/turns")
async def append_turns(
    deps: WriteDependencies, call: Call[AppendTurnsRequest, None]
) -> AppendTurnsResponse:
    """Append turns of a conversation."""
    principal, settings = call.principal, deps.settings
    session = await deps.sessions.get(principal, call.body.session)
    principal.check_write(session.scope)
    redactor = call.redactor.within(session.scope)
    prepared = [
        prepare_turn(n, turn, redactor, settings, call.idempotency_key)
        for n, turn in enumerate(call.body.turns)
    ]
    appended = await deps.sessions.append(
        principal, session.id, [turn for turn, _ in prepared], DEFAULT_THRESHOLDS
    )
    if appended.due:
        await _request_dream(deps, call, appended.scope, appended.due)
    return AppendTurnsResponse(
        accepted=appended.accepted,
        duplicates=appended.duplicates,
        redactions=sum(count for _, count in prepared),
    )


async def _request_dream(
    deps: WriteDependencies, call: Call[Any, Any], scope: str, reason: str
) -> DreamRequestStatus:
    principal = call.principal
    status, ticket = await deps.dreams.request(
        principal.tenant, principal.tenant_name, scope, reason, trace_headers()
    )
    deps.publisher.publish_after_reply(call, principal.tenant, [ticket])
    return DreamRequestStatus(scope=scope, status=status)


def _redact_names(body: StartSessionRequest, redactor: Redactor) -> StartSessionRequest:
    """The same body without secrets in the names that it holds."""
    names = body.model_dump(include={"agent", "user", "project", "branch", "external_id", "group"})
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
    settings: Settings,
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
    results: Mapping[UUID, WriteResult | ReverieError],
    vault_hints: Mapping[ScopedKey, str],
    redactor: Redactor,
) -> RememberResponse | Problem:
    if isinstance(prepared, ReverieError):
        return problem_from_error(prepared, redactor)
    result = results[prepared.memory.id]
    if isinstance(result, ReverieError):
        return problem_from_error(prefix_field(f"items.{index}", result), redactor)
    return _build_remembered_body(prepared, result, vault_hints)
