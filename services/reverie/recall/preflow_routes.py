"""What recall answers before a turn over HTTP."""

from __future__ import annotations

from reverie.contracts.preflow import Preflow, PreflowAnswer, PreflowItem, PreflowLayer
from reverie.domain.active_set import Entry, Layer
from reverie.domain.errors import TooLarge
from reverie.recall.parts import Parts
from reverie.recall.preflow import Prepared, Turn, nothing, preflow
from reverie.recall.seen import session_of
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route


def routes(parts: Parts) -> list[Route]:
    """The table of preflow."""
    doors = Doors(parts)
    return [
        Route("POST", "/v1/preflow", doors.preflow, Preflow, answer=PreflowAnswer, reads=True,
              summary="What an agent should have before a turn, as far as it was not given it yet"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def preflow(self, call: Call[Preflow, None]) -> PreflowAnswer:
        """`POST /v1/preflow`."""
        who, body = call.principal, call.body
        size, limit = len(body.query.encode()), self._parts.settings.content_limit
        if size > limit:
            raise TooLarge("query", size, limit, "content_limit")
        session, missing = await session_of(self._parts, who, body.session)
        if session is None:
            empty = nothing(self._parts, body.query, body.budget_tokens, missing)
            self._parts.meters.answered("preflow", missing)
            return _answer(empty, call.trace_id)
        turn = Turn(session, body.query, body.files, body.budget_tokens, body.compacted, body.again)
        prepared = await preflow(self._parts, who, turn)
        used = [one.id for one in prepared.block.shown if one.layer is Layer.ON_DEMAND]
        self._parts.used.take(who, session.id, used)
        self._parts.meters.answered("preflow", prepared.degraded)
        return _answer(prepared, call.trace_id)


def _answer(prepared: Prepared, trace_id: str) -> PreflowAnswer:
    return PreflowAnswer(
        markdown=prepared.block.markdown,
        tokens=prepared.block.tokens,
        items=[_item(one) for one in prepared.block.shown],
        active=[one.id for one in prepared.chosen.entries if one.memory],
        layers={layer: _layer(prepared, layer) for layer in Layer},
        scopes=prepared.scopes,
        keywords=prepared.keywords,
        intent=prepared.reading.intent.value,
        turn=prepared.turn,
        omitted=prepared.chosen.omitted,
        degraded=prepared.degraded,
        trace_id=trace_id,
    )


def _layer(prepared: Prepared, layer: Layer) -> PreflowLayer:
    within = [one for one in prepared.chosen.entries if one.layer is layer]
    return PreflowLayer(
        budget=prepared.chosen.budgets.of(layer),
        tokens=prepared.chosen.tokens[layer],
        items=len(within),
        new=sum(one.id in prepared.lacked for one in within),
    )


def _item(entry: Entry) -> PreflowItem:
    memory = entry.memory
    return PreflowItem(
        id=memory.id if memory else None,
        layer=entry.layer,
        why=entry.why,
        text=entry.said,
        scope=entry.scope,
        kind=memory.kind.value if memory else "summary",
        score=round(entry.weight, 4),
        staleness=memory.staleness if memory else 0.0,
    )
