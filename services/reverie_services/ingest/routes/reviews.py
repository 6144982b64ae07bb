"""Routes that list reviews of stale memories, and accept or refuse one."""

from __future__ import annotations

from reverie.contracts.memories.git import (
    ReviewBody,
    ReviewDecisionResponse,
    ReviewPage,
    ReviewState,
)
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import IdCursor, PageQuery, cut_page
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.observability.tracing import trace_headers
from reverie_services.ingest.dependencies import ReviewDependencies


class ReviewQuery(PageQuery):
    """Filter of `GET /v1/reviews`."""

    state: ReviewState = "open"


routes = RouteTable[ReviewDependencies]()


@routes.add("GET /v1/reviews")
async def list_reviews(deps: ReviewDependencies, call: Call[None, ReviewQuery]) -> ReviewPage:
    """List reviews of stale memories by a language model."""
    query = call.query
    rows = await deps.reviews.page(call.principal, query.state, query.before_id(), query.limit + 1)
    items, next_cursor = cut_page(rows, query.limit, lambda item: IdCursor(id=item.id))
    bodies = [ReviewBody.model_validate(item, from_attributes=True) for item in items]
    return ReviewPage(items=bodies, next=next_cursor)


@routes.add("POST /v1/reviews/{id}/accept")
async def accept_review(deps: ReviewDependencies, call: Call[None, None]) -> ReviewDecisionResponse:
    """Apply a review to its memory."""
    principal = call.principal
    review_id = await deps.short_ids.resolve(principal, "review", call.path["id"])
    memory_id, events = await deps.reviews.accept(principal, review_id, trace_headers())
    deps.publisher.publish_after_reply(call, principal.tenant, events)
    return ReviewDecisionResponse(id=review_id, memory=memory_id, state="accepted")


@routes.add("POST /v1/reviews/{id}/reject")
async def reject_review(deps: ReviewDependencies, call: Call[None, None]) -> ReviewDecisionResponse:
    """Reject a review."""
    review_id = await deps.short_ids.resolve(call.principal, "review", call.path["id"])
    memory_id = await deps.reviews.refuse(call.principal, review_id)
    return ReviewDecisionResponse(id=review_id, memory=memory_id, state="rejected")
