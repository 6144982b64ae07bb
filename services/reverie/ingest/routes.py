"""What ingest takes over HTTP: memories, sessions, turns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

from reverie.bus.relay import publish_now
from reverie.contracts.base import Problem
from reverie.contracts.dreams import DreamRequested
from reverie.contracts.events import Outgoing
from reverie.contracts.memories import Remember, RememberBatch, Remembered, RememberedBatch
from reverie.contracts.problems import problem_of
from reverie.contracts.sessions import (
    AppendedTurns,
    AppendTurns,
    EndedSession,
    EndSession,
    StartedSession,
    StartSession,
)
from reverie.domain.access import Principal
from reverie.domain.briefing import Briefing
from reverie.domain.context import render
from reverie.domain.errors import NotFound, ReverieError
from reverie.domain.fence import strip
from reverie.domain.fields import below
from reverie.domain.ids import new_id
from reverie.domain.memory import Outcome, Written
from reverie.domain.redaction import redact
from reverie.domain.scopes import (
    agent_levels,
    agent_name,
    home_levels,
    matches,
    names_at,
    project_of,
    reading_scopes,
    scope_at,
    slug,
)
from reverie.domain.state import USE_VAULT
from reverie.ingest.accept import Accepted, accept, accept_turn
from reverie.ingest.parts import Parts
from reverie.ingest.settings import IngestSettings
from reverie.runtime.body import parse_value
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route
from reverie.runtime.telemetry import inject_headers
from reverie.store.memories import events_of

Place = tuple[str, str | None]
"""A scope and a key in it."""

Results = Mapping[UUID, Written | ReverieError]
"""What became of each memory, by its id."""


def routes(parts: Parts) -> list[Route]:
    """The table of ingest."""
    doors = Doors(parts)
    return [
        Route("POST", "/v1/remember", doors.remember, Remember, answer=Remembered, status=201,
              makes=lambda _: 1, compares=True,
              summary="Remember one thing"),
        Route("POST", "/v1/remember/batch", doors.batch, RememberBatch, answer=RememberedBatch,
              makes=lambda body: len(body.items), compares=True,
              summary="Remember many things, each judged by itself"),
        Route("POST", "/v1/sessions/start", doors.start, StartSession, answer=StartedSession,
              status=201, summary="Start a session and read what to know"),
        Route("POST", "/v1/sessions/{id}/end", doors.end, EndSession, answer=EndedSession,
              summary="End a session; it will be digested"),
        Route("POST", "/v1/turns", doors.turns, AppendTurns, answer=AppendedTurns,
              summary="Append turns of a conversation"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def remember(self, call: Call[Remember, None]) -> Remembered:
        """`POST /v1/remember`."""
        who = call.principal
        told_by = (await self._told_by(who, [call.body])).get(call.body.session)
        if isinstance(told_by, ReverieError):
            raise told_by
        accepted = accept(call.body, who, self._parts.settings, told_by)
        [written] = await self._parts.memories.remember(
            who, [accepted.memory], headers := inject_headers(), call.idempotency_key
        )
        if isinstance(written, ReverieError):
            raise written
        self._publish(call, who, events_of(who, written, headers))
        busy = await self._busy(who, [accepted], {accepted.memory.id: written})
        return _remembered(accepted, written, busy)

    async def _busy(
        self, who: Principal, accepted: Sequence[Accepted], written: Results
    ) -> dict[Place, str]:
        """The advice to use the vault, for each key that was written very often."""
        places = {_place(one) for one in accepted if _superseded(written[one.memory.id])}
        if not places:
            return {}
        busy = await self._parts.vault.advice(who, len(places), [(s, k or "") for s, k in places])
        return {
            (one.scope, one.key): f"{one.key} was written {one.versions} times: {USE_VAULT}"
            for one in busy
        }

    async def batch(self, call: Call[RememberBatch, None]) -> RememberedBatch:
        """`POST /v1/remember/batch`: what passes lands together, the rest says why not."""
        who = call.principal
        parsed = [_parsed(f"items.{n}", item) for n, item in enumerate(call.body.items)]
        bodies = [body for body in parsed if isinstance(body, Remember)]
        told_by = await self._told_by(who, bodies)
        judged = [
            body
            if isinstance(body, ReverieError)
            else _judged(body, who, self._parts.settings, told_by.get(body.session), f"items.{n}")
            for n, body in enumerate(parsed)
        ]
        good = [one for one in judged if isinstance(one, Accepted)]
        headers = inject_headers()
        memories = [one.memory for one in good]
        found = await self._parts.memories.remember(who, memories, headers, call.idempotency_key)
        written = dict(zip((one.memory.id for one in good), found, strict=True))
        landed = [one for one in found if isinstance(one, Written)]
        self._publish(call, who, [e for one in landed for e in events_of(who, one, headers)])
        busy = await self._busy(who, good, written)
        items = [_item(place, one, written, busy) for place, one in enumerate(judged)]
        return RememberedBatch(items=items)

    async def _told_by(
        self, who: Principal, bodies: Sequence[Remember]
    ) -> dict[UUID | None, str | ReverieError]:
        """The agent of each session named, or why the key may not name it."""
        named = dict.fromkeys(body.session for body in bodies if body.session)
        found: dict[UUID | None, str | ReverieError] = {}
        for session in named:
            try:
                found[session] = (await self._parts.sessions.get(who, session)).agent
            except NotFound as error:
                found[session] = error
        return found

    async def start(self, call: Call[StartSession, None]) -> StartedSession:
        """`POST /v1/sessions/start`."""
        who, body = call.principal, call.body
        agent = _acting(who, body.agent)
        project = slug(body.project) if body.project else who.project
        branch = redact(body.branch).text if body.branch else None
        said = body.agent if agent_name(body.agent) == agent else agent
        home = home_levels(body.project or who.project, said, branch)
        scope = scope_at(home)
        who.check_write(scope)
        fields = {
            "external_id": redact(body.external_id or "").text or None,
            "agent": agent,
            "user": slug(body.user) if body.user else None,
            "project": project,
            "branch": branch,
        }
        person = names_at([("user", body.user)]) if body.user else {}
        names = {**names_at(home), **names_at(agent_levels(said)), **person}
        known = partial(self._briefing, replace(who, agent=agent), fields["user"])
        # What is told is read beside what is written: neither needs the other.
        reading = asyncio.create_task(known(scope))
        try:
            await self._parts.names.keep(who, names)
            session, at = await self._parts.sessions.start(who, new_id(), scope, fields, body.at)
            briefing = await (reading if at == scope else known(at))
        finally:
            reading.cancel()
        budgets = briefing.budgets.without_files()
        block = render(briefing, budgets, self._parts.model.counter.count)
        return StartedSession(session=session, scope=at, context=block.markdown)

    async def _briefing(self, acting: Principal, user: str | None, scope: str) -> Briefing:
        """What a session in that scope is told."""
        scopes = acting.seen_through(reading_scopes(scope, acting.agent, user))
        return await self._parts.briefings.read(acting, scopes, project_of(scope))

    async def end(self, call: Call[EndSession, None]) -> EndedSession:
        """`POST /v1/sessions/{id}/end`."""
        who = call.principal
        named = await self._parts.ids.named(who, "session", call.path["id"])
        session = await self._parts.sessions.get(who, named)
        who.check_write(session.scope)
        summary = redact(strip(call.body.summary or "").strip()).text or None
        scope, pending = await self._parts.sessions.end(who, session.id, summary, call.body.at)
        if not pending:
            return EndedSession(session=session.id, dream=None)
        return EndedSession(session=session.id, dream=await self._dream(call, scope, "session end"))

    async def turns(self, call: Call[AppendTurns, None]) -> AppendedTurns:
        """`POST /v1/turns`."""
        who, settings = call.principal, self._parts.settings
        session = await self._parts.sessions.get(who, call.body.session)
        who.check_write(session.scope)
        accepted = [
            accept_turn(n, turn, settings, call.idempotency_key)
            for n, turn in enumerate(call.body.turns)
        ]
        done = await self._parts.sessions.append(
            who, session.id, [turn for turn, _ in accepted], settings.dream_limits
        )
        if done.due:
            await self._dream(call, done.scope, done.due)
        return AppendedTurns(
            accepted=done.accepted,
            duplicates=done.duplicates,
            redactions=sum(count for _, count in accepted),
        )

    async def _dream(self, call: Call[Any, Any], scope: str, reason: str) -> DreamRequested:
        who = call.principal
        status, ticket = await self._parts.dreams.request(
            who.tenant, who.tenant_name, scope, reason, inject_headers()
        )
        self._publish(call, who, [ticket])
        return DreamRequested(scope=scope, status=status)

    def _publish(self, call: Call[Any, Any], who: Principal, events: Sequence[Outgoing]) -> None:
        """Puts what a write stored on the bus, after the reply."""
        if events:
            call.after(lambda: publish_now(self._parts.bus, self._parts.outbox, who.tenant, events))


def _acting(who: Principal, named: str) -> str:
    """The agent of a session: the key's own, or a sub-agent of it."""
    agent = agent_name(named)
    return agent if who.agent is None or matches(f"{who.agent}/*", agent) else who.agent


def _parsed(at: str, item: dict[str, Any]) -> Remember | ReverieError:
    try:
        return parse_value(Remember, item, at)
    except ReverieError as error:
        return error


def _judged(
    body: Remember,
    who: Principal,
    settings: IngestSettings,
    told_by: str | ReverieError | None,
    at: str,
) -> Accepted | ReverieError:
    """What is to be written, or what is wrong with it, named below `at`."""
    if isinstance(told_by, ReverieError):
        return told_by
    try:
        return accept(body, who, settings, told_by)
    except ReverieError as error:
        return below(at, error)


def _place(accepted: Accepted) -> Place:
    return accepted.memory.scope, accepted.memory.key


def _superseded(written: Written | ReverieError) -> bool:
    return isinstance(written, Written) and written.outcome is Outcome.SUPERSEDED


def _remembered(accepted: Accepted, written: Written, busy: Mapping[Place, str]) -> Remembered:
    place = _place(accepted)
    notes = [*accepted.hints, *([busy[place]] if place in busy else [])]
    if written.outcome is Outcome.DUPLICATE:
        notes.append("this was known; its confidence went up")
    return Remembered(
        id=written.id,
        status=written.outcome.value,
        version=written.version,
        redactions=accepted.redactions,
        hints=notes,
    )


def _item(
    place: int,
    judged: Accepted | ReverieError,
    written: Results,
    busy: Mapping[Place, str],
) -> Remembered | Problem:
    if isinstance(judged, ReverieError):
        return problem_of(judged)
    result = written[judged.memory.id]
    if isinstance(result, ReverieError):
        return problem_of(below(f"items.{place}", result))
    return _remembered(judged, result, busy)
