"""Route that replays a session: each turn with the memories recalled and made at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from reverie.contracts.sessions import (
    ReplayMemory,
    ReplayPage,
    ReplayRecall,
    ReplayStep,
    ReplayTurn,
)
from reverie.domain.access.principals import Principal
from reverie.domain.core.memory import Memory
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import PageQuery, cut_page, decode_cursor
from reverie.runtime.http.routes import RouteTable
from reverie.store.memories.memories import ListFilter
from reverie.store.search.recall_traces import RecallTraceRecord
from reverie.store.sessions.sessions import TurnRecord
from reverie_services.recall.dependencies import ReplayDependencies
from reverie_services.recall.pipeline.recall_trace import decode_trace
from reverie_services.recall.routes.sessions import TurnCursor

LABEL_CHARS = 200
MAX_EVENTS = 500
"""Recalls, and memories, of one session that are placed beside its turns: the newest."""

routes = RouteTable[ReplayDependencies]()


@dataclass
class _Step:
    turn: TurnRecord
    recalls: list[RecallTraceRecord] = field(default_factory=list)
    memories: list[tuple[Memory, bool]] = field(default_factory=list)


@routes.add("GET /v1/sessions/{id}/replay")
async def replay_session(deps: ReplayDependencies, call: Call[None, PageQuery]) -> ReplayPage:
    """Replay a session step by step, with the memories recalled and made at each turn."""
    principal, query = call.principal, call.query
    session_id = await deps.short_ids.resolve(principal, "session", call.path["id"])
    session = await deps.sessions.get(principal, session_id)
    cursor = decode_cursor(query.cursor, TurnCursor)
    after = cursor.ordinal if cursor else -1
    rows = await deps.sessions.list_turns_with_output(principal, session.id, after, query.limit + 1)
    turns, next_cursor = cut_page(rows, query.limit, lambda turn: TurnCursor(ordinal=turn.ordinal))
    until = rows[query.limit].at if len(rows) > query.limit else None
    await deps.trace_writer.flush()
    recalls = await deps.traces.page(principal, None, MAX_EVENTS, session.id)
    memories = await deps.memories.page(principal, None, MAX_EVENTS, ListFilter(session=session.id))
    steps = place_events(turns, recalls, memories, is_first=after < 0, until=until)
    delivered = await _load_delivered(deps, principal, steps)
    return ReplayPage(items=[_build_step(step, delivered) for step in steps], next=next_cursor)


def place_events(
    turns: Sequence[TurnRecord],
    recalls: Sequence[RecallTraceRecord],
    memories: Sequence[Memory],
    *,
    is_first: bool,
    until: datetime | None,
) -> list[_Step]:
    """Each turn with what belongs to it.

    A memory belongs to the last of the turns that it was made from. All else belongs to the last
    turn before it. What came before the first turn of a session belongs to that one, and what came
    after `until`, the time of the next page's first turn, to a later page.
    """
    steps = [_Step(turn) for turn in turns]
    numbers = {turn.id: number for number, turn in enumerate(turns)}

    def number_at(moment: datetime) -> int | None:
        if not turns or (until is not None and moment >= until):
            return None
        earlier = [number for number, turn in enumerate(turns) if turn.at <= moment]
        return earlier[-1] if earlier else (0 if is_first else None)

    for recall in sorted(recalls, key=lambda each: each.at):
        if (number := number_at(recall.at)) is not None:
            steps[number].recalls.append(recall)
    for memory in sorted(memories, key=lambda each: each.created_at):
        # Ids of turns grow with time.
        last = max(memory.turns, default=None)
        number = number_at(memory.created_at) if last is None else numbers.get(last)
        if number is not None:
            steps[number].memories.append((memory, last is not None))
    return steps


async def _load_delivered(
    deps: ReplayDependencies, principal: Principal, steps: Sequence[_Step]
) -> dict[UUID, list[Memory]]:
    """What each preflow gave, by its trace, as far as the key may read it."""
    given_ids: dict[UUID, list[UUID]] = {}
    for recall in (recall for step in steps for recall in step.recalls):
        if recall.asked.get("given"):
            trace, *_ = await deps.traces.find(principal, recall.id)
            given_ids[recall.id] = [
                UUID(str(delivery["id"]))
                for delivery in decode_trace(trace.details)["deliveries"]
                if delivery["outcome"] == "given"
            ]
    wanted = list({memory for ids in given_ids.values() for memory in ids})
    found = await deps.search.load_memories(principal, wanted, principal.reads) if wanted else {}
    return {
        recall: [found[memory] for memory in ids if memory in found]
        for recall, ids in given_ids.items()
    }


def _build_step(step: _Step, delivered: Mapping[UUID, Sequence[Memory]]) -> ReplayStep:
    return ReplayStep(
        turn=ReplayTurn(**vars(step.turn)),
        recalls=[
            ReplayRecall(
                id=recall.id,
                at=recall.at,
                query=recall.query,
                returned=recall.asked["returned"],
                given=recall.asked.get("given"),
                delivered_at=recall.delivered_at,
                memories=[_build_memory(memory) for memory in delivered.get(recall.id, ())],
            )
            for recall in step.recalls
        ],
        memories=[_build_memory(memory, learned) for memory, learned in step.memories],
    )


def _build_memory(memory: Memory, learned: bool = False) -> ReplayMemory:
    label = " ".join((memory.summary or memory.content).split())[:LABEL_CHARS]
    return ReplayMemory(
        id=memory.id, label=label, kind=memory.kind.value, scope=memory.scope, learned=learned
    )
