"""The door to tending memories now."""

from __future__ import annotations

from reverie.contracts.tending import TendAnswer
from reverie.domain.errors import Forbidden
from reverie.dream.parts import Parts
from reverie.dream.tend import tend
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route
from reverie.store.tending import Garden


def routes(parts: Parts) -> list[Route]:
    """The table of tending."""

    async def now(call: Call[None, None]) -> TendAnswer:
        who = call.principal
        if not who.writable:
            raise Forbidden("tend", who.default_scope())
        home = "*" if "*" in who.writable else who.default_scope()
        done = await tend(parts, Garden(who.tenant, who.tenant_name, who.writable, home))
        return TendAnswer(**done.counts, unfinished=done.unfinished)

    return [
        Route("POST", "/v1/dream/tend", now, answer=TendAnswer,
              summary="Promote, archive, collect, merge and link what is due in the key's scopes"),
    ]  # fmt: skip
