"""The list of memories, and the page of one memory with history, origin and neighbours."""

from __future__ import annotations

import asyncio
import base64
from urllib.parse import quote

from reverie.domain.core.kinds import Kind
from reverie.domain.formats.pictures import EXTENSIONS, HASH_DIGITS, SVG, find_picture_label
from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.console.page_request import PageRequest, PageValues, memory_path
from reverie_services.console.pages.registry import PAGES
from reverie_services.console.requests import data_response

PAGE_SIZE = 50
FILTERS = ("scope", "kind", "status", "tag", "key", "session", "valid_at")
STATUSES = ("active", "superseded", "archived", "deleted")
_VERSIONS = 50
_PICTURES = 12


@PAGES.add("memories", "memories.html", "Memories")
async def list_memories(request: PageRequest) -> PageValues:
    """Memories by scope, kind, status, tag, key and session, newest first."""
    filters = {name: request.ask(name) for name in FILTERS}
    listed = await request.get(
        "/v1/memories",
        limit=request.number("limit", PAGE_SIZE, 200) or 1,
        cursor=request.ask("cursor"),
        **filters,
    )
    return {
        "memories": listed["items"],
        "next_cursor": listed.get("next"),
        "filters": filters,
        "kinds": [kind.value for kind in Kind],
        "statuses": STATUSES,
    }


@PAGES.add("memories/{id}", "memory.html", of="memories")
async def show_memory(request: PageRequest) -> PageValues:
    """One memory. Parts whose calls fail are left out, never the memory itself."""
    path = memory_path(request.values["id"])
    memory = await request.get(path, as_of=request.ask("as_of"))
    path = memory_path(memory["id"])
    history, pictures, provenance, stale, audit = await asyncio.gather(
        request.try_get(f"{path}/history", limit=_VERSIONS, cursor=request.ask("cursor")),
        request.try_get(f"{path}/pictures", limit=_PICTURES, cursor=request.ask("pictures")),
        request.try_get(f"{path}/provenance"),
        request.try_get("/v1/stale", scope=memory["scope"], limit=200)
        if memory.get("stale_grade")
        else asyncio.sleep(0, None),
        request.try_get("/v1/admin/audit", subject=memory["id"], limit=20)
        if request.is_admin
        else asyncio.sleep(0, None),
    )
    versions = sorted((history or {}).get("items", []), key=lambda item: -item["version"])
    marked = {item["memory"]["id"]: item for item in (stale or {}).get("items", [])}
    return {
        "memory": memory,
        # Each version, newest first, with the one before it.
        "versions": list(zip(versions, [*versions[1:], None], strict=True)),
        "next_cursor": (history or {}).get("next"),
        "pictures": [
            {**picture, "label": find_picture_label(memory["content"], picture["hash"])}
            for picture in (pictures or {}).get("items", [])
        ],
        "next_pictures": (pictures or {}).get("next"),
        "provenance": provenance,
        "evidence": marked[memory["id"]]["evidence"] if memory["id"] in marked else [],
        "audit": (audit or {}).get("items", []),
        "may_write": request.may_write(memory["scope"]),
    }


@PAGES.add("memories/{id}/pictures/{hash}", "memory.html", of="memories")
async def show_picture(request: PageRequest) -> OutgoingResponse:
    """The picture itself. An SVG is a file to save: it could hold scripts."""
    path = f"{memory_path(request.values['id'])}/pictures/{quote(request.values['hash'], safe='')}"
    picture = await request.get(path)
    media_type = picture["media_type"]
    name = f"{picture['hash'][:HASH_DIGITS]}.{EXTENSIONS[media_type]}"
    response = data_response(
        base64.b64decode(picture["data"]), media_type, name if media_type == SVG else None
    )
    response.headers.update({"Cache-Control": "private, max-age=300", "Vary": "Cookie"})
    return response
