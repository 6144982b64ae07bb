"""The door to correcting memories after a turn."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from reverie.bus.relay import publish_now
from reverie.contracts.sessions import Adjust, Adjusted, Adjustment
from reverie.domain.access import Principal
from reverie.domain.errors import Invalid, ReverieError
from reverie.domain.fence import strip
from reverie.domain.memory import Memory, Written
from reverie.domain.redaction import redact
from reverie.domain.scopes import reading_scopes
from reverie.inference.asking import Unanswered
from reverie.ingest.adjust import (
    KINDS,
    Change,
    by_model,
    by_rules,
    concerned,
    joined,
    looked_for,
    memory_of,
)
from reverie.ingest.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route
from reverie.runtime.telemetry import inject_headers
from reverie.store.memories import events_of
from reverie.store.sessions import Session

STANDING = 200


def routes(parts: Parts) -> list[Route]:
    """The table of adjusting."""
    doors = Doors(parts)
    return [
        Route("POST", "/v1/sessions/{id}/adjust", doors.adjust, Adjust, answer=Adjusted,
              summary="Take back what a turn corrected, and keep what holds instead"),
    ]  # fmt: skip


class Doors:
    """The handler, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def adjust(self, call: Call[Adjust, None]) -> Adjusted:
        """`POST /v1/sessions/{id}/adjust`. Only what the user said corrects anything."""
        who, parts = call.principal, self._parts
        named = await parts.ids.named(who, "session", call.path["id"])
        session = await parts.sessions.get(who, named)
        who.check_write(session.scope)
        said = _said(call.body)
        if not concerned(said, parts.language):
            return Adjusted(session=session.id, skipped="nothing")
        digest = hashlib.sha256("\n".join(said).encode()).digest()
        taken = await parts.adjusting.take(who, session.id, digest, parts.settings.adjust_seconds)
        if taken != "taken":
            return Adjusted(session=session.id, skipped=taken)
        changes, degraded = await self._changes(who, session, said)
        adjusted = [
            await self._apply(call, session, change, f"adjust {n}")
            for n, change in enumerate(changes)
        ]
        made = [one for one in adjusted if one is not None]
        return Adjusted(session=session.id, adjusted=made, degraded=degraded)

    async def _changes(
        self, who: Principal, session: Session, said: Sequence[str]
    ) -> tuple[list[Change], list[str]]:
        """What is to be changed; by rules where no model answers, and why."""
        model = self._parts.language
        standing = await self._standing(who, session, looked_for(said, model))
        if model is None:
            return by_rules(said, standing), []
        try:
            told = await by_model(model, who.tenant, said, standing)
        except Unanswered as error:
            return by_rules(said, standing), [f"llm: {error}"]
        return joined(told, by_rules(said, standing)), []

    async def _standing(self, who: Principal, session: Session, words: str) -> list[Memory]:
        scopes = reading_scopes(session.scope, session.agent, session.user_name)
        kinds = [kind.value for kind in KINDS]
        return await self._parts.adjusting.standing(who, scopes, kinds, words, STANDING)

    async def _apply(
        self, call: Call[Any, Any], session: Session, change: Change, place: str
    ) -> Adjustment | None:
        """Writes one change; None where the memory changed meanwhile or the write is refused."""
        who, parts, headers = call.principal, self._parts, inject_headers()
        new = memory_of(change, who, session)
        why = f"corrected in a session: {new.metadata['said']}"
        if change.old is None:
            [found] = await parts.memories.remember(
                who, [new], headers, call.idempotency_key, place
            )
            written = None if isinstance(found, ReverieError) else found
        else:
            written = await parts.adjusting.replace(who, change.old, new, why, headers)
        if written is None:
            return None
        _publish(call, parts, who, written, headers)
        old = change.old.id if change.old else None
        return Adjustment(old=old, new=written.id, said=new.metadata["said"])


def _publish(
    call: Call[Any, Any], parts: Parts, who: Principal, written: Written, headers: dict[str, str]
) -> None:
    events = events_of(who, written, headers)
    if events:
        call.after(lambda: publish_now(parts.bus, parts.outbox, who.tenant, events))


def _said(body: Adjust) -> list[str]:
    """What the user said, without secrets and without recalled memory."""
    if body.diff is None and not body.messages:
        raise Invalid("messages", "give the messages of the turn, or its diff")
    texts = [one.content for one in body.messages if one.role == "user"]
    texts += [body.diff] if body.diff else []
    return [clean for text in texts if (clean := redact(strip(text)).text.strip())]
