"""The pages of stale memories with their evidence, and of proposed reviews."""

from __future__ import annotations

from reverie_services.console.pages.registry import PAGES
from reverie_services.console.visit import PageValues, Visit

PAGE_SIZE = 20
REVIEW_STATES = ("open", "accepted", "rejected")


@PAGES.add("stale", "stale.html", "Stale")
async def list_stale(visit: Visit) -> PageValues:
    """Memories with marks, the most doubtful first."""
    filters = {name: visit.ask(name) for name in ("project", "scope")}
    page = await visit.get("/v1/stale", limit=PAGE_SIZE, cursor=visit.ask("cursor"), **filters)
    return {
        "stale": page["items"],
        "messages": page.get("messages", []),
        "next_cursor": page.get("next"),
        "filters": filters,
        "may_write": any(visit.may_write(item["memory"]["scope"]) for item in page["items"]),
    }


@PAGES.add("reviews", "reviews.html", "Reviews")
async def list_reviews(visit: Visit) -> PageValues:
    """Proposals for memories whose source changed."""
    state = visit.ask("state") or "open"
    page = await visit.get("/v1/reviews", limit=PAGE_SIZE, cursor=visit.ask("cursor"), state=state)
    return {
        "reviews": page["items"],
        "next_cursor": page.get("next"),
        "state": state,
        "states": REVIEW_STATES,
    }
