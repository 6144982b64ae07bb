"""The pages of stale memories with their evidence, and of proposed reviews."""

from __future__ import annotations

from reverie_services.console.page_request import PageRequest, PageValues
from reverie_services.console.pages.registry import PAGES

PAGE_SIZE = 20
REVIEW_STATES = ("open", "accepted", "rejected")


@PAGES.add("stale", "stale.html", "Stale")
async def list_stale(request: PageRequest) -> PageValues:
    """Memories with marks, the most doubtful first."""
    filters = {name: request.ask(name) for name in ("project", "scope")}
    page = await request.get("/v1/stale", limit=PAGE_SIZE, cursor=request.ask("cursor"), **filters)
    return {
        "stale": page["items"],
        "messages": page.get("messages", []),
        "next_cursor": page.get("next"),
        "filters": filters,
        "may_write": any(request.may_write(item["memory"]["scope"]) for item in page["items"]),
    }


@PAGES.add("reviews", "reviews.html", "Reviews")
async def list_reviews(request: PageRequest) -> PageValues:
    """Proposals for memories whose source changed."""
    state = request.ask("state") or "open"
    page = await request.get(
        "/v1/reviews", limit=PAGE_SIZE, cursor=request.ask("cursor"), state=state
    )
    return {
        "reviews": page["items"],
        "next_cursor": page.get("next"),
        "state": state,
        "states": REVIEW_STATES,
    }
