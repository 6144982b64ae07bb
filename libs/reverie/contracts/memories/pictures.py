"""Bodies of the pictures that a memory carries."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field, StringConstraints

from reverie.contracts.base import NonBlankStr, PageResponse, RequestBody, ResponseBody

PictureName = Annotated[NonBlankStr, StringConstraints(max_length=200)]


class AttachPictureRequest(RequestBody):
    """`POST /v1/memories/{id}/pictures`. `data`: a PNG, JPEG, GIF, WebP or SVG picture in base64.

    `text`: what is written or shown in it, by which the memory is found. Without it, the text of an
    SVG is taken, or a language model reads it, if one is set.
    """

    data: Annotated[str, StringConstraints(min_length=1)]
    name: PictureName | None = None
    text: Annotated[str, StringConstraints(max_length=8_000)] | None = None


class PictureBody(ResponseBody):
    """A picture of a memory. `hash`: the SHA-256 of its bytes in hex; `size` in bytes."""

    memory: UUID
    hash: str
    media_type: str
    size: int
    created_at: datetime


class AttachPictureResponse(PictureBody):
    """The picture. `created` is false if the memory carried it before. `text`: by which it is
    found. `redactions` counts the secrets that were replaced.
    """

    created: bool
    text: str = ""
    redactions: int = 0


class PictureContent(PictureBody):
    """`GET /v1/memories/{id}/pictures/{hash}`: the picture with its bytes in base64."""

    data: str


class PicturePage(PageResponse):
    """`GET /v1/memories/{id}/pictures`, in the order of hashes."""

    items: list[PictureBody] = Field(default_factory=list)


class RemovePictureResponse(ResponseBody):
    """`DELETE /v1/memories/{id}/pictures/{hash}`: what was removed."""

    memory: UUID
    hash: str
