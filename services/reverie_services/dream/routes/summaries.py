"""Routes that list the summaries of scopes and their versions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reverie.contracts.dreams import (
    CitedSentence,
    ScopeSummary,
    SummaryPage,
    SummarySourceBody,
)
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import CursorPosition, ScopedQuery, cut_page, decode_cursor
from reverie.runtime.http.routes import RouteTable
from reverie.store.sessions.summaries import StoredSummary, SummaryStore


class SummaryCursor(CursorPosition):
    """A cursor of the list of summaries."""

    scope: Annotated[str, Field(max_length=400)]


class SummaryVersionCursor(CursorPosition):
    """A cursor of the versions of one."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1)]


routes = RouteTable[SummaryStore]()


@routes.add("GET /v1/dream/summaries")
async def list_summaries(deps: SummaryStore, call: Call[None, ScopedQuery]) -> SummaryPage:
    """List the summaries of scopes with their memories."""
    principal, query = call.principal, call.query
    after = decode_cursor(query.cursor, SummaryCursor)
    rows = await deps.page(
        principal,
        query.readable_scope(principal),
        after.scope if after else None,
        query.limit + 1,
    )
    items, next_cursor = cut_page(
        rows, query.limit, lambda summary: SummaryCursor(scope=summary.scope)
    )
    return SummaryPage(items=[_build_summary_body(summary) for summary in items], next=next_cursor)


@routes.add("GET /v1/dream/summaries/history")
async def list_summary_versions(deps: SummaryStore, call: Call[None, ScopedQuery]) -> SummaryPage:
    """List the versions of a scope's summary, newest first."""
    principal, query = call.principal, call.query
    scope = query.readable_scope(principal) or principal.default_scope()
    before = decode_cursor(query.cursor, SummaryVersionCursor)
    rows = await deps.list_versions(
        principal, scope, before.version if before else None, query.limit + 1
    )
    items, next_cursor = cut_page(
        rows, query.limit, lambda summary: SummaryVersionCursor(version=summary.version)
    )
    return SummaryPage(items=[_build_summary_body(summary) for summary in items], next=next_cursor)


def _build_summary_body(summary: StoredSummary) -> ScopeSummary:
    return ScopeSummary(
        scope=summary.scope,
        version=summary.version,
        content=summary.content,
        tokens=summary.tokens,
        created_at=summary.created_at,
        run=summary.run,
        sources=[SummarySourceBody(**vars(basis)) for basis in summary.sources],
        overview=[
            CitedSentence(text=sentence.text, memories=list(sentence.memories))
            for sentence in summary.overview
        ],
    )
