"""The bytes of a memory's picture, by the rights of the memory."""

from __future__ import annotations

import base64
from urllib.parse import quote

from reverie.domain.formats.pictures import EXTENSIONS, HASH_DIGITS, SVG
from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.console.pages.registry import PAGES
from reverie_services.console.requests import data_response
from reverie_services.console.visit import Visit, memory_path

_CACHING = {"Cache-Control": "private, max-age=300", "Vary": "Cookie"}


@PAGES.add("memories/{id}/pictures/{hash}", "memory.html", of="memories")
async def show_picture(visit: Visit) -> OutgoingResponse:
    """The picture itself. An SVG is a file to save: it could hold scripts."""
    path = f"{memory_path(visit.values['id'])}/pictures/{quote(visit.values['hash'], safe='')}"
    picture = await visit.get(path)
    media_type = picture["media_type"]
    name = f"{picture['hash'][:HASH_DIGITS]}.{EXTENSIONS[media_type]}"
    response = data_response(
        base64.b64decode(picture["data"]), media_type, name if media_type == SVG else None
    )
    response.headers.update(_CACHING)
    return response
