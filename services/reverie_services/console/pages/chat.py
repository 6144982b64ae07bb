"""The pages of chats with agents of the engine: the list, and one chat."""

from __future__ import annotations

import base64
from itertools import zip_longest
from typing import Any
from urllib.parse import quote

from reverie.domain.formats.attachments import MessageParts, split_message
from reverie.mcp.rest_calls import RestCallError
from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.console.page_request import PageRequest, PageValues
from reverie_services.console.pages.registry import PAGES
from reverie_services.console.requests import data_response

MESSAGES = 50
OPEN = ("queued", "running", "waiting")


@PAGES.add("chat", "chats.html", "Chat")
async def list_chats(request: PageRequest) -> PageValues:
    """The chats, newest first, and the form that begins one."""
    try:
        page = await request.get("/v1/groups", limit=50, cursor=request.ask("cursor"))
    except RestCallError as error:
        # If the engine is disabled, the gateway answers 404.
        if error.problem.status not in (404, 503):
            raise
        return {"chats": [], "agents": None, "next_cursor": None}
    agents = await request.get("/v1/agents")
    return {"chats": page["items"], "agents": agents["items"], "next_cursor": page["next"]}


@PAGES.add("chat/{id}", "chat.html", of="chat")
async def show_chat(request: PageRequest) -> PageValues:
    """The messages, the open turns, and the form for a message."""
    group_id = request.values["id"]
    path = f"/v1/groups/{quote(group_id, safe='')}/messages"
    before = request.number("before", 0, 2**53)
    page = await request.get(path, limit=MESSAGES, before=before)
    turns = {turn["id"]: turn for turn in page["turns"]}
    return {
        "group": group_id,
        "messages": [_show_message(item, turns) for item in page["items"]],
        "is_newest": before == 0,
        "earlier": page["previous"],
        "open_turns": [turn for turn in page["turns"] if turn["status"] in OPEN],
        "settled": _list_settled(page["turns"]),
        "start": request.position("from"),
    }


def _show_message(item: dict[str, Any], turns: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A message with its turn, its attachments, and the turns that failed to answer it.

    An agent's answer has no attachments.
    """
    parts = split_message(item["content"])
    if item["turn"] is not None:
        parts = MessageParts(item["content"], [], [])
    pictures = list(zip_longest(item["images"], parts.images, fillvalue=""))
    shown = [picture for picture in pictures if picture[0]]
    erased = [about for image, about in pictures if not image]
    failed = [
        turn
        for turn in turns.values()
        if turn["chain"] == item["id"] and turn["status"] == "failed"
    ]
    about = {"parts": parts, "pictures": shown, "erased": erased, "failed": failed}
    return {**item, **about, "of": turns.get(item["turn"])}


@PAGES.add("chat/{id}/images/{image}", "chat.html", of="chat")
async def show_image(request: PageRequest) -> OutgoingResponse:
    """An image of a message."""
    group, image = (quote(request.values[name], safe="") for name in ("id", "image"))
    found = await request.get(f"/v1/groups/{group}/images/{image}")
    response = data_response(base64.b64decode(found["data"]), found["media_type"])
    response.headers["Cache-Control"] = "private, no-cache"
    return response


def _list_settled(turns: list[dict[str, Any]]) -> list[str]:
    """The calls that no longer wait: they are decided, or their turn is over."""
    return [
        call
        for turn in turns
        for call, entry in (turn["waits"] or {}).items()
        if turn["status"] not in OPEN or entry.get("approved") is not None
    ]
