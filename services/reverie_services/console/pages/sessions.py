"""The pages of sessions: each turn with the memories that were given, remembered and learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.console.page_request import PageRequest, PageValues
from reverie_services.console.pages.registry import PAGES
from reverie_services.console.rendering import render_template
from reverie_services.console.requests import file_response

FILTERS = ("agent", "project", "session")
PAGE_SIZE = 50
_SHARED_TURNS = 2_000
_Body = Mapping[str, Any]


@PAGES.add("sessions", "sessions.html", "Sessions")
async def list_sessions(request: PageRequest) -> PageValues:
    """Sessions, newest first."""
    filters = {name: request.ask(name) for name in FILTERS}
    page = await request.get(
        "/v1/sessions", limit=PAGE_SIZE, cursor=request.ask("cursor"), **filters
    )
    return {"listed": page["items"], "next_cursor": page.get("next"), "filters": filters}


@PAGES.add("sessions/{id}", "session.html", of="sessions")
async def show_session(request: PageRequest) -> PageValues:
    """One page of turns, or, with `step`, the turns up to that one."""
    session = request.values["id"]
    step = request.number("step", 0, 1_000_000)
    if step:
        turns, next_cursor = await _load_steps(request, session, step)
    else:
        page = await request.get(
            f"/v1/sessions/{quote(session, safe='')}/replay",
            limit=PAGE_SIZE,
            cursor=request.ask("cursor"),
        )
        turns, next_cursor = page["items"], page.get("next")
    return {
        "session": await _load_session(request, session),
        "turns": turns,
        "next_cursor": None if step else next_cursor,
        "step": step,
        "is_last_step": len(turns) < step or next_cursor is None,
    }


@PAGES.add("sessions/{id}/share", "shared_session.html", of="sessions")
async def share_session(request: PageRequest) -> OutgoingResponse:
    """The conversation as one file, after the privacy filter: the tenant's secrets are left out."""
    session = request.values["id"]
    turns, _ = await _load_steps(request, session, _SHARED_TURNS)
    redactor = (await request.load_redactor(request.principal.tenant)).naming(
        request.principal.may_read
    )
    shared: dict[str, Any] = redactor.redact_value({"turns": turns}).value
    values = {"session": await _load_session(request, session), **shared}
    page = render_template("shared_session.html", request.language, values)
    return file_response(f"session-{session[-8:]}.html", "text/html", page)


async def _load_steps(
    request: PageRequest, session: str, limit: int
) -> tuple[list[_Body], str | None]:
    turns: list[_Body] = []
    cursor: str | None = None
    while len(turns) < limit:
        page = await request.get(
            f"/v1/sessions/{quote(session, safe='')}/replay",
            limit=min(200, limit - len(turns)),
            cursor=cursor,
        )
        turns += page["items"]
        cursor = page.get("next")
        if cursor is None:
            break
    return turns, cursor


async def _load_session(request: PageRequest, session: str) -> _Body:
    sessions = await request.try_get("/v1/sessions", session=session, limit=1)
    found = (sessions or {}).get("items", [])
    return found[0] if found else {"id": session}
