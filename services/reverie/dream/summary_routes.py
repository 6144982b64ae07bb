"""The summaries of scopes over HTTP."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reverie.contracts.dreams import ScopeSummary, SummaryPage, SummaryRest
from reverie.dream.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.paging import Position, ScopedQuery, cut_page, decode_cursor
from reverie.runtime.routes import Route
from reverie.store.summaries import Summary


class ByScope(Position):
    """A cursor of the list of summaries."""

    scope: Annotated[str, Field(max_length=400)]


class ByVersion(Position):
    """A cursor of the versions of one."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1)]


def routes(parts: Parts) -> list[Route]:
    """The table of summaries."""

    async def summaries(call: Call[None, ScopedQuery]) -> SummaryPage:
        who, query = call.principal, call.query
        after = decode_cursor(query.cursor, ByScope)
        found = await parts.summaries.page(
            who, query.readable(who), after.scope if after else None, query.limit + 1
        )
        items, following = cut_page(found, query.limit, lambda one: ByScope(scope=one.scope))
        return SummaryPage(items=[_body(one) for one in items], next=following)

    async def history(call: Call[None, ScopedQuery]) -> SummaryPage:
        who, query = call.principal, call.query
        scope = query.readable(who) or who.default_scope()
        below = decode_cursor(query.cursor, ByVersion)
        found = await parts.summaries.history(
            who, scope, below.version if below else None, query.limit + 1
        )
        items, following = cut_page(found, query.limit, lambda one: ByVersion(version=one.version))
        return SummaryPage(items=[_body(one) for one in items], next=following)

    return [
        Route("GET", "/v1/dream/summaries", summaries, query=ScopedQuery, answer=SummaryPage,
              summary="What stands in each scope, and the memories that it rests on"),
        Route("GET", "/v1/dream/summaries/history", history, query=ScopedQuery, answer=SummaryPage,
              summary="The versions of a scope's summary, newest first"),
    ]  # fmt: skip


def _body(one: Summary) -> ScopeSummary:
    return ScopeSummary(
        scope=one.scope,
        version=one.version,
        content=one.content,
        tokens=one.tokens,
        made_at=one.made,
        run=one.run,
        rests_on=[SummaryRest(**vars(rest)) for rest in one.rests_on],
    )
