"""Digests one session: segments its turns by topic, extracts and writes memories."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from uuid import UUID

import structlog

from reverie.contracts.events import BULK_HEADERS, build_outgoing_event, memory_subject
from reverie.domain.core.errors import ReverieError
from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import KIND_POLICIES
from reverie.domain.core.memory import NewMemory, hash_content
from reverie.domain.extraction.conversation.topic_segmentation import (
    TopicSegment,
    build_windows,
    segment_turns,
)
from reverie.domain.extraction.dream_log import DigestDecision, DreamRunLog
from reverie.domain.extraction.own_memories import find_own_lessons, own_preference_scope
from reverie.domain.extraction.rule_extractor import (
    ExtractedMemory,
    build_session_memory,
    deduplicate_memories,
    extract_memories,
)
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.index_terms import memory_index_text
from reverie.domain.text.markdown import shorten
from reverie.domain.text.turns import TurnText
from reverie.runtime.observability.tracing import span, trace_headers
from reverie.store.sessions.dream_queue import DreamLease, DreamSession, ExistingMatch
from reverie_services.dream.dependencies import DigestDependencies
from reverie_services.dream.digest.comparison import compare_with_existing
from reverie_services.dream.digest.leases import LeaseLost
from reverie_services.dream.extractor import Extraction, drop_uncited

log = structlog.get_logger("reverie.dream")

MAX_SHOWN_CHARS = 200
"""Of a statement that was dropped, so much is in the report of the run."""


@contextmanager
def timed_stage(record: DreamRunLog, name: str) -> Iterator[None]:
    """Adds the seconds inside to a stage of the record."""
    started = perf_counter()
    try:
        yield
    finally:
        record.add_time(name, perf_counter() - started)


async def digest_session(
    deps: DigestDependencies,
    lease: DreamLease,
    run: UUID,
    session: DreamSession,
    record: DreamRunLog,
) -> None:
    """Digests what waits of a session; of a live one, all but the topic that is still open."""
    async for closed_topics, has_more in _iterate_closed_topics(deps, lease, session, record):
        turns = [turn for topic in closed_topics for turn in topic.turns]
        with span("digest session", session=str(session.id), turns=len(turns)):
            with timed_stage(record, "distil"):
                extractions = [
                    await _extract_topic(deps, topic, lease, record) for topic in closed_topics
                ]
                extracted_memories = deduplicate_memories(
                    extracted for extraction in extractions for extracted in extraction.memories
                )
                first_turns = await deps.dreams.load_session_turns(
                    lease, session.id, deps.settings.opening_turns
                )
                session_overview = await asyncio.to_thread(
                    _build_session_overview,
                    first_turns,
                    closed_topics,
                    extracted_memories,
                    lambda item: _choose_scope(lease.scope, session, item) == lease.scope,
                )
                # The vault may have got secrets after the turns were stored.
                redactor = await deps.load_redactor(lease.tenant)
                items = _build_memories(
                    lease.scope, session, extracted_memories, session_overview, redactor
                )
                items += _build_agent_lessons(session, turns, redactor)
            for item, extracted in zip(items, extracted_memories, strict=False):
                count = len(extracted.turns)
                reason = f"{count} turn{'s' * (count > 1)}, priority {extracted.priority:.2f}"
                record.record_reason(item.id, f"{reason}, written by {extracted.produced_by}")
            with timed_stage(record, "compare"):
                matches = await compare_with_existing(deps, lease, items)
            ids = [turn.id for turn in turns]
            await _commit_memories(deps, lease, run, session, items, ids, matches, record)
        log.info("digested", session=str(session.id), turns=len(turns), rest=has_more)


async def _extract_topic(
    deps: DigestDependencies, topic: TopicSegment, lease: DreamLease, record: DreamRunLog
) -> Extraction:
    """Extracts the memories of a topic, and records the cost."""
    extraction = drop_uncited(topic, await deps.extractor.extract(topic, lease))
    record.add_llm_usage(extraction.llm_calls, extraction.llm_tokens, extraction.prompt)
    record.degraded |= extraction.degraded
    for dropped in extraction.dropped:
        why = f"the model stated “{shorten(dropped.text, MAX_SHOWN_CHARS)}”: {dropped.objection}"
        record.record_decision(DigestDecision("dropped", why, turns=dropped.turns))
    deps.metrics.count_records(extraction.outcomes)
    objections = Counter(dropped.objection.name.lower() for dropped in extraction.dropped)
    deps.metrics.count_statements({"kept": extraction.kept_statements, **objections})
    return extraction


async def _iterate_closed_topics(
    deps: DigestDependencies, lease: DreamLease, session: DreamSession, record: DreamRunLog
) -> AsyncIterator[tuple[list[TopicSegment], bool]]:
    """The topics that will not grow any more, page by page, and whether more is to come."""
    pending: list[TurnText] = []
    more = True
    while more:
        after = pending[-1].ordinal if pending else -1
        with timed_stage(record, "read"):
            page = await deps.dreams.list_turns(
                lease, session.id, after, deps.settings.turn_page_size
            )
        more = len(page) == deps.settings.turn_page_size
        with timed_stage(record, "slice"):
            topics = await segment_session(deps, [*pending, *page])
        closed_topics = topics if session.settled and not more else topics[:-1]
        pending = [turn for topic in topics[len(closed_topics) :] for turn in topic.turns]
        if closed_topics:
            yield closed_topics, more


async def segment_session(
    deps: DigestDependencies, turns: Sequence[TurnText]
) -> list[TopicSegment]:
    """Cuts turns of a session into topics; their words alone decide if there is no model."""
    return await asyncio.to_thread(
        segment_turns, turns, await _embed_windows(deps, build_windows(turns))
    )


async def _embed_windows(
    deps: DigestDependencies, texts: Sequence[str]
) -> list[list[float]] | None:
    if deps.model_manager is None or len(texts) < 2:
        return None
    try:
        embedder = await deps.model_manager.get_embedder()
        vectors = await embedder.embed(texts)
    except ReverieError:
        return None
    return [[float(value) for value in vector] for vector in vectors]


def _build_session_overview(
    first_turns: Sequence[TurnText],
    closed_topics: Sequence[TopicSegment],
    memories: Sequence[ExtractedMemory],
    is_shared: Callable[[ExtractedMemory], bool],
) -> ExtractedMemory | None:
    """Builds the overview of a session: its first request and its outcome.

    `memories`: those of the closed topics. Only shared ones may be mentioned.
    """
    first = closed_topics[0].turns[0].ordinal
    earlier_topics = segment_turns([turn for turn in first_turns if turn.ordinal < first])
    all_memories = [*extract_memories(earlier_topics), *memories]
    own_memories = [memory for memory in all_memories if not is_shared(memory)]
    return build_session_memory(
        list(_leave_out([*earlier_topics, *closed_topics], own_memories)),
        memories=[memory for memory in all_memories if is_shared(memory)],
    )


def _leave_out(
    topics: Sequence[TopicSegment], own_memories: Sequence[ExtractedMemory]
) -> Iterator[TopicSegment]:
    """The topics without what users say of themselves, which a project's memory must not tell."""
    statements: dict[UUID, list[str]] = {}
    for memory in own_memories:
        for turn_id in memory.turns:
            statements.setdefault(turn_id, []).append(memory.content)
    for topic in topics:
        turns = [_cut_statements(turn, statements.get(turn.id, ())) for turn in topic.turns]
        if remaining := tuple(turn for turn in turns if turn.content):
            yield TopicSegment(remaining)


def _cut_statements(turn: TurnText, statements: Sequence[str]) -> TurnText:
    """The turn without the statements; empty if one of them is not found in its words."""
    content = turn.content
    for statement in statements:
        content = content.replace(statement, "") if statement in content else ""
    return replace(turn, content=content.strip()) if statements else turn


async def _commit_memories(
    deps: DigestDependencies,
    lease: DreamLease,
    run: UUID,
    session: DreamSession,
    items: Sequence[NewMemory],
    turns: Sequence[UUID],
    matches: Mapping[UUID, ExistingMatch],
    record: DreamRunLog,
) -> None:
    """Writes what was found, with what was noted on the way."""
    headers, flushed_record = trace_headers() | BULK_HEADERS, record.flush()
    with timed_stage(record, "write"):
        results = await deps.dreams.commit(
            lease, run, session.id, items, turns, headers, flushed_record, matches
        )
    if results is None:
        raise LeaseLost
    subject = memory_subject(lease.tenant_name, "remembered", headers)
    events = [
        build_outgoing_event(
            lease.tenant,
            subject,
            {"id": result["id"], "version": result["version"]},
            headers,
            UUID(result["event"]),
        )
        for result in results
        if result.get("event")
    ]
    kinds = [
        item.kind.value
        for item, result in zip(items, results, strict=True)
        if result.get("outcome") in ("created", "superseded", "contradicting")
    ]
    deps.metrics.count_digested(len(turns), kinds)
    rejections = [result["problem"] for result in results if "problem" in result]
    if rejections:
        log.warning("memories_rejected", problems=rejections)
    await deps.publisher.publish(lease.tenant, events)


def _build_memories(
    scope: str,
    session: DreamSession,
    extracted_memories: Sequence[ExtractedMemory],
    session_overview: ExtractedMemory | None,
    redactor: Redactor,
) -> list[NewMemory]:
    """Builds the memories of the new turns, and the updated memory of the session."""
    memories = [
        _build_memory(_choose_scope(scope, session, item), session, item)
        for item in extracted_memories
    ]
    if session_overview is not None:
        key = f"session:{session.id}"
        whole = _build_memory(scope, session, session_overview, key, "the session went on")
        memories.append(replace(whole, summary=session.summary))
    return [redactor.redact_memory(item) for item in memories]


def _build_agent_lessons(
    session: DreamSession, turns: Sequence[TurnText], redactor: Redactor
) -> list[NewMemory]:
    """What the agent learned about its own work, whatever the project, if its key may keep it."""
    scope = f"agent/{session.agent}"
    if scope not in session.own_scopes:
        return []
    lessons = [_build_memory(scope, session, lesson) for lesson in find_own_lessons(turns)]
    return [redactor.redact_memory(lesson) for lesson in lessons]


def _choose_scope(scope: str, session: DreamSession, item: ExtractedMemory) -> str:
    """The scope of a memory: what users say of their own way of working is their own."""
    own = own_preference_scope(
        item.kind, item.content, item.files, session.project, session.user_name
    )
    return own if own and own in session.own_scopes else scope


def _build_memory(
    scope: str,
    session: DreamSession,
    extracted: ExtractedMemory,
    key: str | None = None,
    reason: str | None = None,
) -> NewMemory:
    written_at = {path: at.isoformat() for path, at in extracted.file_writes}
    git_fields = {
        "files": list(extracted.files),
        "branch": session.branch,
        "modified_at": written_at,
    }
    parts = {"generated_by": extracted.produced_by, "record": extracted.record}
    metadata = {name: value for name, value in parts.items() if value}
    return NewMemory(
        id=new_id(),
        scope=scope,
        kind=extracted.kind,
        content=extracted.content,
        content_hash=hash_content(extracted.content),
        words=memory_index_text(None, extracted.content, extracted.tags, metadata),
        tier=KIND_POLICIES[extracted.kind].tier,
        confidence=round(0.5 + 0.4 * extracted.priority, 3),
        key=key,
        supersede_reason=reason,
        tags=extracted.tags,
        session=session.id,
        agent=session.agent,
        source="dream",
        turns=extracted.turns,
        git={name: value for name, value in git_fields.items() if value} or None,
        metadata=metadata,
        valid_from=extracted.at,
    )
