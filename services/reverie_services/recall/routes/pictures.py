"""Routes that read the pictures of memories."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from reverie.contracts.memories.pictures import PictureBody, PictureContent, PicturePage
from reverie.domain.core.errors import InvalidInput
from reverie.domain.formats.pictures import HASH_DIGITS, parse_digest
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.pagination import CursorPosition, PageQuery, cut_page, decode_cursor
from reverie.runtime.http.picture_replies import build_picture_reply, wants_bytes
from reverie.runtime.http.routes import RouteTable
from reverie.store.memories.memories import MemoryStore
from reverie.store.memories.pictures import PictureStore, StoredPicture


@dataclass(frozen=True)
class PictureReadDependencies:
    """Dependencies of reading pictures."""

    memories: MemoryStore
    pictures: PictureStore


class PictureCursor(CursorPosition):
    """The hash of the last picture of a page."""

    hash: str


routes = RouteTable[PictureReadDependencies]()


@routes.add("GET /v1/memories/{id}/pictures")
async def list_pictures(deps: PictureReadDependencies, call: Call[None, PageQuery]) -> PicturePage:
    """List the pictures of a memory."""
    principal, query = call.principal, call.query
    memory_id = await deps.memories.resolve(principal, call.path["id"])
    await deps.memories.get(principal, memory_id)
    after = decode_cursor(query.cursor, PictureCursor)
    try:
        position = bytes.fromhex(after.hash) if after else b""
    except ValueError:
        raise InvalidInput("cursor", "is not a cursor that this list gave") from None
    found = await deps.pictures.list_pictures(principal, memory_id, position, query.limit + 1)
    items, next_cursor = cut_page(
        found, query.limit, lambda picture: PictureCursor(hash=picture.hash.hex())
    )
    bodies = [PictureBody(**_describe(picture)) for picture in items]
    return PicturePage(items=bodies, next=next_cursor)


@routes.add(
    "GET /v1/memories/{id}/pictures/{hash}",
    response=PictureContent,
    response_examples={"image/png": "the bytes of the picture"},
)
async def get_picture(deps: PictureReadDependencies, call: Call[None, None]) -> Reply:
    """Get a picture of a memory; `Accept: image/*` gets the bytes themselves, as a download."""
    principal = call.principal
    memory_id = await deps.memories.resolve(principal, call.path["id"])
    digest = parse_digest(call.path["hash"])
    picture, data = await deps.pictures.get(principal, memory_id, digest)
    if not wants_bytes(call):
        encoded = base64.b64encode(data).decode()
        return Reply(body=PictureContent(**_describe(picture), data=encoded))
    return build_picture_reply(data, picture.media_type, picture.hash.hex()[:HASH_DIGITS])


def _describe(picture: StoredPicture) -> dict[str, object]:
    return {
        "memory": picture.memory,
        "hash": picture.hash.hex(),
        "media_type": picture.media_type,
        "size": picture.size,
        "created_at": picture.created,
    }
