"""Doors to reviews: what a language model says of memories in doubt waits here for somebody."""

from __future__ import annotations

from reverie.bus.relay import publish_now
from reverie.contracts.reviews import Decided, ReviewBody, ReviewPage, State
from reverie.ingest.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.paging import ById, PageQuery, cut_page
from reverie.runtime.routes import Route
from reverie.runtime.telemetry import inject_headers
from reverie.store.reviews import Review


class ReviewQuery(PageQuery):
    """Filter of `GET /v1/reviews`."""

    state: State = "open"


def routes(parts: Parts) -> list[Route]:
    """The table of reviews."""

    async def page(call: Call[None, ReviewQuery]) -> ReviewPage:
        query = call.query
        found = await parts.reviews.page(
            call.principal, query.state, query.below(), query.limit + 1
        )
        items, following = cut_page(found, query.limit, lambda one: ById(id=one.id))
        return ReviewPage(items=[_body(one) for one in items], next=following)

    async def accept(call: Call[None, None]) -> Decided:
        who = call.principal
        named = await parts.ids.named(who, "review", call.path["id"])
        memory, events = await parts.reviews.accept(who, named, inject_headers())
        call.after(lambda: publish_now(parts.bus, parts.outbox, who.tenant, events))
        return Decided(id=named, memory=memory, state="accepted")

    async def refuse(call: Call[None, None]) -> Decided:
        named = await parts.ids.named(call.principal, "review", call.path["id"])
        memory = await parts.reviews.refuse(call.principal, named)
        return Decided(id=named, memory=memory, state="refused")

    return [
        Route("GET", "/v1/reviews", page, query=ReviewQuery, answer=ReviewPage,
              summary="What a language model says of memories in doubt"),
        Route("POST", "/v1/reviews/{id}/accept", accept, answer=Decided,
              summary="Do to the memory what a review says"),
        Route("POST", "/v1/reviews/{id}/refuse", refuse, answer=Decided,
              summary="Leave the memory as it is"),
    ]  # fmt: skip


def _body(one: Review) -> ReviewBody:
    return ReviewBody.model_validate({name: getattr(one, name) for name in ReviewBody.model_fields})
