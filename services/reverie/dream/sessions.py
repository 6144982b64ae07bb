"""The digest of one session: its turns in pages, cut into slices, each made into segments."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog

from reverie.bus.relay import publish_now
from reverie.contracts.events import memory_subject, outgoing
from reverie.domain.clean import without_secrets
from reverie.domain.distil import Distilled, distinct, session_memory
from reverie.domain.dreaming import Record
from reverie.domain.ids import new_id
from reverie.domain.kinds import TREATMENT
from reverie.domain.known_secrets import knowing
from reverie.domain.memory import NewMemory, content_hash
from reverie.domain.slices import Slice, slice_turns
from reverie.domain.turns import TurnText
from reverie.domain.words import index_text
from reverie.dream.compare import compared
from reverie.dream.extract import RULES, Context, Extraction, cited
from reverie.dream.parts import Parts
from reverie.dream.slicing import sliced
from reverie.dream.stages import stage
from reverie.runtime.telemetry import inject_headers, span
from reverie.store.dreams import DreamSession, Lease, Like

log = structlog.get_logger("reverie.dream")


class LeaseLost(Exception):
    """Another worker has the scope: what this one holds is void."""


async def digest_session(
    parts: Parts, lease: Lease, run: UUID, session: DreamSession, record: Record
) -> None:
    """Digests what waits of a session; of a live one, all but the topic that is still open."""
    context = Context(lease, session)
    async for closed, rest in _closed_slices(parts, lease, session, record):
        turns = [turn for part in closed for turn in part.turns]
        with span("digest session", session=str(session.id), turns=len(turns)):
            with stage(record, "distil"):
                made = [await _extracted(parts, part, context, record) for part in closed]
                segments = distinct(one for extraction in made for one in extraction.segments)
                begun = await parts.dreams.whole(lease, session.id, parts.settings.whole)
                about = await asyncio.to_thread(_about, begun, closed)
                with await knowing_of(parts, lease):
                    items = _memories(lease.scope, session, segments, about)
            for item, one in zip(items, segments, strict=False):
                record.because(item.id, _because(one))
            with stage(record, "compare"):
                like = await compared(parts, lease, items)
            ids = [turn.id for turn in turns]
            await _commit(parts, lease, run, session, items, ids, like, record)
        log.info("digested", session=str(session.id), turns=len(turns), rest=rest)


def _because(one: Distilled) -> str:
    many = len(one.turns)
    return f"{many} turn{'s' * (many > 1)}, priority {one.priority:.2f}"


async def _extracted(parts: Parts, part: Slice, context: Context, record: Record) -> Extraction:
    """What a slice gave, with what it cost noted."""
    made = cited(part, await parts.extractor.extract(part, context))
    record.asked(made.llm_calls, made.llm_tokens, None if made.by == RULES else made.by)
    if made.degraded:
        record.degraded.add(made.degraded)
    return made


async def _closed_slices(
    parts: Parts, lease: Lease, session: DreamSession, record: Record
) -> AsyncIterator[tuple[list[Slice], bool]]:
    """The slices that will not grow any more, page by page, and whether more is to come."""
    waiting: list[TurnText] = []
    more = True
    while more:
        after = waiting[-1].ord if waiting else -1
        with stage(record, "read"):
            page = await parts.dreams.turns(lease, session.id, after, parts.settings.batch)
        more = len(page) == parts.settings.batch
        with stage(record, "slice"):
            slices = await sliced(parts, [*waiting, *page])
        closed = slices if session.settled and not more else slices[:-1]
        waiting = [turn for part in slices[len(closed) :] for turn in part.turns]
        if closed:
            yield closed, more


def _about(begun: Sequence[TurnText], closed: Sequence[Slice]) -> Distilled | None:
    """What the session was asked, from its beginning, and what came of it in the end."""
    first = closed[0].turns[0].ord
    before = slice_turns([turn for turn in begun if turn.ord < first])
    return session_memory([*before, *closed])


async def knowing_of(parts: Parts, lease: Lease) -> AbstractContextManager[None]:
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
    like: Mapping[UUID, Like],
    record: Record,
) -> None:
    """Writes what was found, with what was noted on the way."""
    headers, noted = inject_headers(), record.flush()
    with stage(record, "write"):
        results = await parts.dreams.commit(
            lease, run, session.id, items, turns, headers, noted, like
        )
    if results is None:
        raise LeaseLost
    subject = memory_subject(lease.tenant_name, "remembered")
    events = [
        outgoing(lease.tenant, subject, _hint(one), headers, UUID(one["event"]))
        for one in results
        if one.get("event")
    ]
    kinds = [
        item.kind.value
        for item, one in zip(items, results, strict=True)
        if one.get("outcome") in ("created", "superseded", "contradicting")
    ]
    parts.meters.wrote(len(turns), kinds)
    parts.meters.asked(noted.llm_calls, noted.llm_tokens)
    refused = [one["problem"] for one in results if "problem" in one]
    if refused:
        log.warning("memories_refused", problems=refused)
    await publish_now(parts.bus, parts.outbox, lease.tenant, events)


def _hint(result: dict[str, Any]) -> dict[str, object]:
    return {"id": result["id"], "version": result["version"]}


def _memories(
    scope: str, session: DreamSession, segments: Sequence[Distilled], about: Distilled | None
) -> list[NewMemory]:
    """What the new turns gave, and the memory of the session as it stands with them."""
    found = [_memory(scope, session, one) for one in segments]
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
    wrote = {path: at.isoformat() for path, at in one.wrote}
    place = {"files": list(one.files), "branch": session.branch, "wrote": wrote}
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
        metadata={"made_by": one.by} if one.by else {},
        valid_from=one.at,
    )
