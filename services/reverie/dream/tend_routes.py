"""The door to tending memories now."""

from __future__ import annotations

from typing import Literal

from reverie.contracts.tending import TendAnswer
from reverie.domain.errors import Forbidden
from reverie.dream.parts import Parts
from reverie.dream.tend import tend
from reverie.dream.would import would
from reverie.runtime.body import Query
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route
from reverie.store.tending import Garden


class TendQuery(Query):
    """`only` these passes; `dry_run`: only count what would be archived or collected."""

    only: list[Literal["archive", "collect"]] | None = None
    dry_run: bool = False


def routes(parts: Parts) -> list[Route]:
    """The table of tending."""

    async def now(call: Call[None, TendQuery]) -> TendAnswer:
        who = call.principal
        if not who.writable:
            raise Forbidden("tend", who.default_scope())
        home = "*" if "*" in who.writable else who.default_scope()
        garden, query = Garden(who.tenant, who.tenant_name, who.writable, home), call.query
        if query.dry_run:
            return TendAnswer(**await would(parts, garden))
        done = await tend(parts, garden, query.only or ())
        return TendAnswer(**done.counts, unfinished=done.unfinished)

    return [
        Route("POST", "/v1/dream/tend", now, query=TendQuery, answer=TendAnswer,
              summary="Promote, archive, collect, merge and link what is due in the key's scopes"),
    ]  # fmt: skip
