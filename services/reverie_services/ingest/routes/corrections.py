"""Route that corrects memories after a turn."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from reverie.contracts.sessions import (
    CorrectedMemory,
    CorrectSessionRequest,
    CorrectSessionResponse,
)
from reverie.domain.access.scopes import default_read_scopes
from reverie.domain.core.errors import InvalidInput, ReverieError
from reverie.domain.text.memory_fence import strip_fenced
from reverie.inference.llm_endpoint import LanguageModelError
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.memories.memories import build_events
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.ingest.dependencies import CorrectionDependencies
from reverie_services.ingest.write.corrections import (
    CORRECTABLE_KINDS,
    MemoryCorrection,
    build_corrected_memory,
    build_search_words,
    find_changes_by_model,
    find_changes_by_rules,
    may_correct_memories,
    merge_changes,
)

MAX_CANDIDATES = 200

COOLDOWN = 30.0

"""Seconds between two corrections of a session."""


routes = RouteTable[CorrectionDependencies]()


@routes.add("POST /v1/sessions/{id}/correct")
async def correct_session(
    deps: CorrectionDependencies, call: Call[CorrectSessionRequest, None]
) -> CorrectSessionResponse:
    """Apply the corrections of a turn to memories.

    Only what the user said corrects anything.
    """
    principal = call.principal
    session_id = await deps.short_ids.resolve(principal, "session", call.path["id"])
    session = await deps.sessions.get(principal, session_id)
    principal.check_write(session.scope)
    body, redactor = call.body, call.redactor.within(session.scope)
    if body.diff is None and not body.messages:
        raise InvalidInput("messages", "give the messages of the turn, or its diff")
    said = [message.content for message in body.messages if message.role == "user"]
    own_texts = map(strip_fenced, [*said, body.diff or ""])
    texts = [clean for text in own_texts if (clean := redactor.redact(text).text.strip())]
    if not may_correct_memories(texts, deps.language_model):
        return CorrectSessionResponse(session=session.id, skipped="nothing")
    digest = hashlib.sha256("\n".join(texts).encode()).digest()
    claim = await deps.corrections.claim_turn(principal, session.id, digest, COOLDOWN)
    if claim != "taken":
        return CorrectSessionResponse(session=session.id, skipped=claim)
    changes, degraded = await _find_changes(deps, call, session, texts)
    adjusted = [
        await _apply_change(deps, call, session, change, f"adjust {n}")
        for n, change in enumerate(changes)
    ]
    applied = [adjustment for adjustment in adjusted if adjustment is not None]
    return CorrectSessionResponse(session=session.id, corrections=applied, degraded=degraded)


async def _find_changes(
    deps: CorrectionDependencies, call: Call[Any, Any], session: SessionRecord, texts: Sequence[str]
) -> tuple[list[MemoryCorrection], list[str]]:
    """Finds the changes to apply; uses rules if no model answers, and returns why."""
    principal, model = call.principal, deps.language_model
    scopes = default_read_scopes(
        session.scope, session.agent, session.user_name, session.group_name
    )
    kinds = [kind.value for kind in CORRECTABLE_KINDS]
    words = build_search_words(texts, model)
    memories = await deps.corrections.find_candidates(
        principal, scopes, kinds, words, MAX_CANDIDATES
    )
    if model is None:
        return find_changes_by_rules(texts, memories), []
    try:
        model_changes = await find_changes_by_model(
            model, principal, call.redactor, texts, memories
        )
    except LanguageModelError as error:
        return find_changes_by_rules(texts, memories), [f"llm: {error}"]
    return merge_changes(model_changes, find_changes_by_rules(texts, memories)), []


async def _apply_change(
    deps: CorrectionDependencies,
    call: Call[Any, Any],
    session: SessionRecord,
    change: MemoryCorrection,
    position: str,
) -> CorrectedMemory | None:
    """Writes one change; None if the memory changed concurrently or the write is refused."""
    principal, headers = call.principal, trace_headers()
    new_memory = build_corrected_memory(change, principal, call.redactor, session)
    reason = f"corrected in a session: {new_memory.metadata['quote']}"
    if change.old is None:
        [result] = await deps.memories.remember(
            principal,
            [new_memory],
            headers,
            call.idempotency_key,
            position,
            call.redactor.secrets.epoch,
        )
        written = None if isinstance(result, ReverieError) else result
    else:
        written = await deps.corrections.replace(principal, change.old, new_memory, reason, headers)
    if written is None:
        return None
    events = build_events(principal, written, headers)
    deps.publisher.publish_after_reply(call, principal.tenant, events)
    old = change.old.id if change.old else None
    return CorrectedMemory(old=old, new=written.id, quote=new_memory.metadata["quote"])
