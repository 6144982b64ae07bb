"""Routes that list reviews of stale memories, and accept or refuse one."""

from __future__ import annotations

from reverie.contracts.git import ReviewBody, ReviewDecisionResponse, ReviewPage, ReviewState
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import IdCursor, PageQuery, cut_page
from reverie.runtime.http.routes import Route
from reverie.runtime.observability.tracing import trace_headers
from reverie_services.ingest.dependencies import ReviewDependencies


class ReviewQuery(PageQuery):
    """Filter of `GET /v1/reviews`."""

    state: ReviewState = "open"


def build_review_routes(deps: ReviewDependencies) -> list[Route]:
    """The routes of reviews."""

    async def page(call: Call[None, ReviewQuery]) -> ReviewPage:
        query = call.query
        rows = await deps.reviews.page(
            call.principal, query.state, query.before_id(), query.limit + 1
        )
        items, next_cursor = cut_page(rows, query.limit, lambda item: IdCursor(id=item.id))
        bodies = [ReviewBody.model_validate(item, from_attributes=True) for item in items]
        return ReviewPage(items=bodies, next=next_cursor)

    async def accept(call: Call[None, None]) -> ReviewDecisionResponse:
        principal = call.principal
        review_id = await deps.short_ids.resolve(principal, "review", call.path["id"])
        memory_id, events = await deps.reviews.accept(principal, review_id, trace_headers())
        deps.publisher.publish_after_reply(call, principal.tenant, events)
        return ReviewDecisionResponse(id=review_id, memory=memory_id, state="accepted")

    async def refuse(call: Call[None, None]) -> ReviewDecisionResponse:
        review_id = await deps.short_ids.resolve(call.principal, "review", call.path["id"])
        memory_id = await deps.reviews.refuse(call.principal, review_id)
        return ReviewDecisionResponse(id=review_id, memory=memory_id, state="rejected")

    return [
        Route(
            "GET",
            "/v1/reviews",
            page,
            query=ReviewQuery,
            response=ReviewPage,
            summary="List reviews of stale memories by a language model",
        ),
        Route(
            "POST",
            "/v1/reviews/{id}/accept",
            accept,
            response=ReviewDecisionResponse,
            summary="Apply a review to its memory",
        ),
        Route(
            "POST",
            "/v1/reviews/{id}/reject",
            refuse,
            response=ReviewDecisionResponse,
            summary="Reject a review",
        ),
    ]
