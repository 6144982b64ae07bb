"""Routes that list the summaries of scopes and their versions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reverie.contracts.dreams import ScopeSummary, SummaryPage, SummarySourceBody
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import CursorPosition, ScopedQuery, cut_page, decode_cursor
from reverie.runtime.http.routes import Route
from reverie.store.sessions.summaries import StoredSummary, SummaryStore


class SummaryCursor(CursorPosition):
    """A cursor of the list of summaries."""

    scope: Annotated[str, Field(max_length=400)]


class SummaryVersionCursor(CursorPosition):
    """A cursor of the versions of one."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1)]


def build_summary_routes(summary_store: SummaryStore) -> list[Route]:
    """The routes of summaries."""

    async def summaries(call: Call[None, ScopedQuery]) -> SummaryPage:
        principal, query = call.principal, call.query
        after = decode_cursor(query.cursor, SummaryCursor)
        rows = await summary_store.page(
            principal,
            query.readable_scope(principal),
            after.scope if after else None,
            query.limit + 1,
        )
        items, next_cursor = cut_page(
            rows, query.limit, lambda summary: SummaryCursor(scope=summary.scope)
        )
        return SummaryPage(
            items=[_build_summary_body(summary) for summary in items], next=next_cursor
        )

    async def history(call: Call[None, ScopedQuery]) -> SummaryPage:
        principal, query = call.principal, call.query
        scope = query.readable_scope(principal) or principal.default_scope()
        before = decode_cursor(query.cursor, SummaryVersionCursor)
        rows = await summary_store.list_versions(
            principal, scope, before.version if before else None, query.limit + 1
        )
        items, next_cursor = cut_page(
            rows, query.limit, lambda summary: SummaryVersionCursor(version=summary.version)
        )
        return SummaryPage(
            items=[_build_summary_body(summary) for summary in items], next=next_cursor
        )

    return [
        Route(
            "GET",
            "/v1/dream/summaries",
            summaries,
            query=ScopedQuery,
            response=SummaryPage,
            summary="List the summaries of scopes with their memories",
        ),
        Route(
            "GET",
            "/v1/dream/summaries/history",
            history,
            query=ScopedQuery,
            response=SummaryPage,
            summary="List the versions of a scope's summary, newest first",
        ),
    ]


def _build_summary_body(summary: StoredSummary) -> ScopeSummary:
    return ScopeSummary(
        scope=summary.scope,
        version=summary.version,
        content=summary.content,
        tokens=summary.tokens,
        created_at=summary.created_at,
        run=summary.run,
        sources=[SummarySourceBody(**vars(basis)) for basis in summary.sources],
    )
