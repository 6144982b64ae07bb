"""Routes that attach pictures to memories and remove them."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from reverie.contracts.memories.pictures import (
    AttachPictureRequest,
    AttachPictureResponse,
    RemovePictureResponse,
)
from reverie.domain.core.memory import Memory
from reverie.domain.formats.pictures import (
    SVG,
    add_picture_line,
    extract_svg_text,
    parse_digest,
    remove_picture_line,
)
from reverie.domain.text.memory_fence import strip_fenced
from reverie.inference.llm_client import LanguageModel
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import check_size
from reverie.store.memories.edits import build_content_fields
from reverie.store.memories.pictures import PictureStore
from reverie_services.ingest.dependencies import EditDependencies
from reverie_services.ingest.write.memory_changes import build_reply, change_as_read, change_memory
from reverie_services.ingest.write.picture_files import decode_picture, read_picture_text


@dataclass(frozen=True)
class PictureDependencies:
    """Dependencies of pictures."""

    edits: EditDependencies
    pictures: PictureStore
    language_model: LanguageModel | None


routes = RouteTable[PictureDependencies]()


@routes.add("POST /v1/memories/{id}/pictures")
async def attach_picture(
    deps: PictureDependencies, call: Call[AttachPictureRequest, None]
) -> AttachPictureResponse:
    """Attach a picture to a memory, which is then found by the text in it."""
    principal, body = call.principal, call.body
    memory_id = await deps.edits.memories.resolve(principal, call.path["id"])
    memory = await deps.edits.memories.get(principal, memory_id)
    principal.check_write(memory.scope)
    redactor = call.redactor.within(memory.scope)
    data, media_type, redactions = await asyncio.to_thread(decode_picture, body.data, redactor)
    text = body.text
    if text is None and media_type == SVG:
        text = await asyncio.to_thread(extract_svg_text, data)
    if text is None and deps.language_model is not None:
        text = await read_picture_text(deps.language_model, principal, data, media_type)
    redacted = redactor.redact_value(
        {"text": strip_fenced(text or "").strip(), "name": strip_fenced(body.name or "").strip()}
    )
    shown = redacted.value
    digest = hashlib.sha256(data).digest()

    async def edit(current: Memory, expected_version: int) -> Reply:
        content = add_picture_line(current.content, digest.hex(), shown["name"], shown["text"])
        return await _change_content(deps, call, current, content, expected_version, "attached")

    await change_as_read(deps.edits, call, edit)
    created = await deps.pictures.put(principal, memory_id, digest, media_type, data)
    return AttachPictureResponse(
        memory=memory_id,
        hash=digest.hex(),
        media_type=media_type,
        size=len(data),
        created_at=datetime.now(UTC),
        created=created,
        text=shown["text"],
        redactions=redactions + redacted.count,
    )


@routes.add("DELETE /v1/memories/{id}/pictures/{hash}")
async def remove_picture(
    deps: PictureDependencies, call: Call[None, None]
) -> RemovePictureResponse:
    """Remove a picture from a memory."""
    principal, digest = call.principal, parse_digest(call.path["hash"])
    memory_id = await deps.edits.memories.resolve(principal, call.path["id"])
    memory = await deps.edits.memories.get(principal, memory_id)
    principal.check_write(memory.scope)

    async def edit(current: Memory, expected_version: int) -> Reply:
        content = remove_picture_line(current.content, digest.hex())
        return await _change_content(deps, call, current, content, expected_version, "removed")

    await change_as_read(deps.edits, call, edit)
    await deps.pictures.delete(principal, memory_id, digest)
    return RemovePictureResponse(memory=memory_id, hash=digest.hex())


async def _change_content(
    deps: PictureDependencies,
    call: Call[Any, None],
    memory: Memory,
    content: str,
    expected_version: int,
    outcome: str,
) -> Reply:
    """Changes the text of a memory, unless it says so already."""
    if content == memory.content:
        return Reply()
    check_size("content", content, deps.edits.content_limit, "content_limit")
    fields = build_content_fields(content, memory.key, memory.tags, memory.metadata)
    return build_reply(
        await change_memory(
            deps.edits, call, fields, f"picture {outcome}", "edited", expected_version
        )
    )
