"""One dream over one scope: turns in, memories and a summary out, under a lease."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NoReturn
from uuid import UUID

import structlog

from reverie.bus.relay import publish_now
from reverie.contracts.events import memory_subject, outgoing
from reverie.domain.clean import without_secrets
from reverie.domain.distil import Distilled, distil, session_memory
from reverie.domain.ids import new_id
from reverie.domain.kinds import TREATMENT
from reverie.domain.known_secrets import knowing
from reverie.domain.memory import NewMemory, content_hash
from reverie.domain.redaction import redact
from reverie.domain.slices import slice_turns
from reverie.domain.summary import summarise
from reverie.domain.turns import TurnText
from reverie.domain.words import index_text
from reverie.dream.parts import Parts
from reverie.runtime.telemetry import inject_headers, span
from reverie.store.dreams import DreamSession, Lease

log = structlog.get_logger("reverie.dream")


class LeaseLost(Exception):
    """Another worker has the scope: what this one holds is void."""


class WorkersLost(Exception):
    """Every worker that took this scope died over it: the next would too."""


async def dream(parts: Parts, lease: Lease) -> str:
    """Digests all that waits in the scope. Answers done, again, lost, retry or parked."""
    run = new_id()
    with span("dream", scope=lease.scope, attempt=lease.attempts):
        try:
            return await _while_kept(parts, lease, _run(parts, lease, run))
        except LeaseLost:
            log.warning("lease_lost", run=str(run))
            return "lost"
        except Exception as error:
            log.exception("dream_failed", run=str(run), attempt=lease.attempts)
            return await parts.dreams.fail(
                lease,
                run,
                type(error).__name__,
                parts.settings.max_attempts,
                parts.settings.pause_seconds,
            )


async def _run(parts: Parts, lease: Lease, run: UUID) -> str:
    _held(await parts.dreams.start(lease, run, parts.settings.worker))
    if lease.attempts > parts.settings.max_attempts:
        raise WorkersLost
    while sessions := await parts.dreams.sessions(lease):
        for session in sessions:
            await _digest_session(parts, lease, run, session)
    known = await parts.dreams.known(lease, parts.settings.summary_memories)
    if known:
        with await _knowing(parts, lease):
            told = summarise(known, parts.counter.count, parts.settings.summary_tokens)
            text = redact(told).text
        _held(await parts.dreams.summarise(lease, text, parts.counter.count(text)))
    state, ticket = await parts.dreams.finish(lease, run, inject_headers())
    if state == "again":
        await publish_now(parts.bus, parts.outbox, lease.tenant, [ticket])
    log.info("dreamt", run=str(run), state=state)
    return state


async def _digest_session(parts: Parts, lease: Lease, run: UUID, session: DreamSession) -> None:
    while turns := await parts.dreams.turns(lease, session.id, parts.settings.batch):
        whole = await parts.dreams.whole(lease, session.id, parts.settings.whole)
        with span("digest session", session=str(session.id), turns=len(turns)):
            with await _knowing(parts, lease):
                items = await asyncio.to_thread(_memories, lease.scope, session, turns, whole)
            await _commit(parts, lease, run, session, items, [turn.id for turn in turns])


async def _knowing(parts: Parts, lease: Lease) -> AbstractContextManager[None]:
    """What is redacted inside loses the secrets that came into the vault after the turns; none of
    them is named, for the scope's readers may not know the entry."""
    return knowing(await parts.known_of(lease.tenant), lambda _: False)


async def _commit(
    parts: Parts,
    lease: Lease,
    run: UUID,
    session: DreamSession,
    items: Sequence[NewMemory],
    turns: Sequence[UUID],
) -> None:
    headers = inject_headers()
    results = await parts.dreams.commit(lease, run, session.id, items, turns, headers)
    if results is None:
        raise LeaseLost
    subject = memory_subject(lease.tenant_name, "remembered")
    events = [
        outgoing(lease.tenant, subject, _hint(one), headers, UUID(one["event"]))
        for one in results
        if one.get("event")
    ]
    refused = [one["problem"] for one in results if "problem" in one]
    if refused:
        log.warning("memories_refused", problems=refused)
    await publish_now(parts.bus, parts.outbox, lease.tenant, events)


def _hint(result: dict[str, Any]) -> dict[str, object]:
    return {"id": result["id"], "version": result["version"]}


def _memories(
    scope: str, session: DreamSession, turns: Sequence[TurnText], whole: Sequence[TurnText]
) -> list[NewMemory]:
    """What the new turns gave, and the memory of the session as it stands with them."""
    found = [_memory(scope, session, one) for one in distil(slice_turns(turns))]
    about = session_memory(slice_turns(whole))
    if about is not None:
        key = f"session:{session.id}"
        whole_session = _memory(scope, session, about, key, "the session went on")
        found.append(replace(whole_session, summary=session.summary))
    return [without_secrets(one) for one in found]


def _memory(
    scope: str,
    session: DreamSession,
    one: Distilled,
    key: str | None = None,
    reason: str | None = None,
) -> NewMemory:
    place = {"files": list(one.files), "branch": session.branch}
    return NewMemory(
        id=new_id(),
        scope=scope,
        kind=one.kind,
        content=one.content,
        content_hash=content_hash(one.content),
        words=index_text(" ".join((one.content, *one.tags))),
        tier=TREATMENT[one.kind].tier,
        confidence=round(0.5 + 0.4 * one.priority, 3),
        key=key,
        supersede_reason=reason,
        tags=one.tags,
        session=session.id,
        agent=session.agent,
        source="dream",
        turns=one.turns,
        git={name: value for name, value in place.items() if value} or None,
        valid_from=one.at,
    )


def _held(held: bool) -> None:
    if not held:
        raise LeaseLost


async def _while_kept(parts: Parts, lease: Lease, work: Coroutine[Any, Any, str]) -> str:
    """The outcome of the work, beside which the lease is renewed; `LeaseLost` ends it early."""
    working = asyncio.create_task(work)
    keeping = asyncio.create_task(_keep(parts, lease))
    try:
        done, _ = await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
        return await (working if working in done else keeping)
    finally:
        for task in (working, keeping):
            task.cancel()
        await asyncio.gather(working, keeping, return_exceptions=True)


async def _keep(parts: Parts, lease: Lease) -> NoReturn:
    """Renews the lease every third of its time, until that fails."""
    seconds = parts.settings.lease_seconds
    while True:
        await asyncio.sleep(seconds / 3)
        _held(await parts.dreams.renew(lease, seconds))
