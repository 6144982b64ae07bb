"""The recalls of the last day, and one of them: what was given, what was held back, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from reverie_services.console.page_request import PageRequest, PageValues
from reverie_services.console.pages.ask import list_arms
from reverie_services.console.pages.registry import PAGES
from reverie_services.console.rendering import count_delivered

FILTERS = ("text", "actor", "session", "gave")
PAGE_SIZE = 50
_FETCHED = 200
_MAX_PAGES = 10
"""Pages of the store that are searched for one page: 2,000 recalls."""
_Recall = Mapping[str, Any]


@PAGES.add("recalls", "recalls.html", "Recalls")
async def list_recalls(request: PageRequest) -> PageValues:
    """Recalls that fit the filters, newest first."""
    recalls, cursor = await _find_recalls(request, PAGE_SIZE)
    return {
        "recalls": recalls,
        "next_cursor": cursor,
        "filters": {name: request.ask(name) for name in FILTERS},
        "live": None if request.ask("cursor") else "recalls",
    }


@PAGES.add("recalls/{id}", "recall.html", of="recalls")
async def show_recall(request: PageRequest) -> PageValues:
    """One recall, with the next and the previous one that fit the same filters."""
    trace = await request.get(f"/v1/traces/{quote(request.values['id'], safe='')}")
    around, _ = await _find_recalls(request, _FETCHED * _MAX_PAGES)
    ids = [recall["id"] for recall in around]
    place = ids.index(trace["id"]) if trace["id"] in ids else None
    return {
        "trace": trace,
        "arms": list_arms(trace),
        "newer": ids[place - 1] if place else None,
        "older": ids[place + 1] if place is not None and place + 1 < len(ids) else None,
    }


async def _find_recalls(request: PageRequest, limit: int) -> tuple[list[_Recall], str | None]:
    """The recalls that fit the filters, and the cursor of those after them."""
    found: list[_Recall] = []
    cursor = request.ask("cursor")
    for _ in range(_MAX_PAGES):
        # A page of the store is shown whole, so that its cursor goes on where it ends.
        size = min(_FETCHED, max(limit - len(found), PAGE_SIZE))
        page = await request.get(
            "/v1/traces", limit=size, cursor=cursor, session=request.ask("session")
        )
        found += _filter_recalls(page["items"], request)
        cursor = page.get("next")
        if cursor is None or len(found) >= limit:
            break
    return found, cursor


def _filter_recalls(recalls: Sequence[_Recall], request: PageRequest) -> list[_Recall]:
    text, actor, gave = (request.ask(name) for name in ("text", "actor", "gave"))
    return [
        recall
        for recall in recalls
        if (text is None or text.lower() in recall["query"].lower())
        and (actor is None or actor.lower() in recall["actor"].lower())
        and (gave is None or (gave == "something") == bool(count_delivered(recall)))
    ]
