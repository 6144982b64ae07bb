"""How recalls came to their answers, for whoever may read all that they looked through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from reverie.contracts.traces import Trace, TraceCandidate, TraceHead, TracePage
from reverie.domain.access import Principal
from reverie.domain.memory import Memory
from reverie.recall.parts import Parts
from reverie.recall.trace import told_again
from reverie.runtime.calls import Call
from reverie.runtime.paging import ById, PageQuery, cut_page
from reverie.runtime.routes import Route
from reverie.store.traces import StoredTrace

LABEL_CHARS = 120


class TraceQuery(PageQuery):
    """Filters of `GET /v1/traces`."""

    session: UUID | None = None


def routes(parts: Parts) -> list[Route]:
    """The table of traces."""
    doors = Doors(parts)
    return [
        Route("GET", "/v1/traces", doors.traces, query=TraceQuery, answer=TracePage,
              summary="List recalls, newest first"),
        Route("GET", "/v1/traces/{id}", doors.trace, answer=Trace,
              summary="How a recall came to its answer; by its trace_id or its own id"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def traces(self, call: Call[None, TraceQuery]) -> TracePage:
        """`GET /v1/traces`."""
        query = call.query
        await self._parts.recorder.flush()
        found = await self._parts.traces.page(
            call.principal, query.below(), query.limit + 1, query.session
        )
        items, following = cut_page(found, query.limit, lambda one: ById(id=one.id))
        return TracePage(items=[TraceHead(**_head(one)) for one in items], next=following)

    async def trace(self, call: Call[None, None]) -> Trace:
        """`GET /v1/traces/{id}`."""
        who = call.principal
        await self._parts.recorder.flush()
        named = await self._parts.ids.named(who, "trace", call.path["id"])
        one, *others = await self._parts.traces.find(who, named)
        body = Trace(**_head(one), **told_again(one.told), others=[other.id for other in others])
        body.candidates = await self._readable(who, body.candidates)
        return body

    async def _readable(self, who: Principal, told: list[TraceCandidate]) -> list[TraceCandidate]:
        """The candidates that may be read, and what they say of others that may be."""
        ids = {one.id for one in told} | {hop.source for one in told for hop in one.hops}
        ids |= {one.cut_by for one in told if one.cut_by}
        known = await self._parts.search.load(who, list(ids), who.reads)
        return [_shown(one, known) for one in told if one.type == "turn" or one.id in known]


def _shown(one: TraceCandidate, known: Mapping[UUID, Memory]) -> TraceCandidate:
    one.hops = [hop for hop in one.hops if hop.source in known]
    one.cut_by = one.cut_by if one.cut_by in known else None
    memory = known.get(one.id)
    if memory is not None:
        one.kind, one.scope, one.status = memory.kind.value, memory.scope, memory.status.value
        one.label = " ".join((memory.summary or memory.content).split())[:LABEL_CHARS]
    return one


def _head(one: StoredTrace) -> dict[str, Any]:
    return {
        "id": one.id,
        "trace_id": one.trace.hex if one.trace else None,
        "at": one.at,
        "actor": one.actor,
        "session": one.session,
        "agent": one.agent,
        "scopes": list(one.scopes),
        "query": one.query,
        **one.asked,
    }
