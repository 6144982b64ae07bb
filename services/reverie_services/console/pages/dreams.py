"""The pages of dreams: what waits, past runs, and the input and decisions of one run."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from reverie_services.console.page_request import PageRequest, PageValues
from reverie_services.console.pages.registry import PAGES

PAGE_SIZE = 50


@PAGES.add("dreams", "dreams.html", "Dreams")
async def list_dreams(request: PageRequest) -> PageValues:
    """Scopes with turns that wait, and the dreams of all scopes or of one."""
    scope, cursor = request.ask("scope"), request.ask("cursor")
    dreams, waiting = await asyncio.gather(
        request.get("/v1/dreams", limit=PAGE_SIZE, cursor=cursor, scope=scope),
        request.try_get("/v1/dream", limit=PAGE_SIZE, scope=scope),
    )
    return {
        "dreams": dreams["items"],
        "next_cursor": dreams.get("next"),
        "waiting": (waiting or {}).get("items", []),
        "scope": scope,
        "live": None if cursor else "dreams",
    }


@PAGES.add("dreams/{id}", "dream.html", of="dreams")
async def show_dream(request: PageRequest) -> PageValues:
    """One dream: its input by session, and each decision with its reason."""
    path = f"/v1/dreams/{quote(request.values['id'], safe='')}"
    dream = await request.get(path, limit=200, cursor=request.ask("cursor"))
    outcome = request.ask("outcome")
    decisions = [
        decision
        for decision in dream["decisions"]
        if outcome is None or decision["outcome"] == outcome
    ]
    return {
        "dream": dream,
        "decisions": decisions,
        "outcome": outcome,
        "next_cursor": dream.get("next"),
        "live": "dreams" if dream["status"] == "running" else None,
    }
