"""Checks the bytes of a picture, redacts an SVG, and reads the text in it by a language model."""

from __future__ import annotations

import base64
import binascii

from pydantic import BaseModel, Field

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import InvalidInput, PayloadTooLarge
from reverie.domain.formats.pictures import MAX_TEXT, SVG, detect_media_type
from reverie.domain.redaction.redactor import Redactor
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import LanguageModelError, UsageTally
from reverie.inference.llm_prompts import get_prompt

MAX_PICTURE_BYTES = 10 * 1024 * 1024
"""In base64, it fits into a line of an import."""


def decode_picture(text: str, redactor: Redactor) -> tuple[bytes, str, int]:
    """The bytes and the type of a picture in base64, and the secrets that were replaced in an SVG.

    Raises `InvalidInput` or `PayloadTooLarge`.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("data", "is not base64") from None
    if len(data) > MAX_PICTURE_BYTES:
        raise PayloadTooLarge("data", len(data), MAX_PICTURE_BYTES, "fixed for pictures")
    media_type = detect_media_type(data)
    if media_type != SVG:
        return data, media_type, 0
    try:
        redacted = redactor.redact(data.decode())
    except UnicodeDecodeError:
        raise InvalidInput("data", "is an SVG in another encoding than UTF-8") from None
    return redacted.text.encode(), media_type, redacted.count


class _PictureAnswer(BaseModel):
    text: str = Field(max_length=4 * MAX_TEXT)


async def read_picture_text(
    model: LanguageModel, principal: Principal, data: bytes, media_type: str
) -> str:
    """What is written and shown in a picture; empty if the model does not say."""
    try:
        answer = await model.ask(
            principal.tenant,
            get_prompt("picture"),
            "The picture is attached.",
            _PictureAnswer,
            UsageTally(principal),
            picture=(data, media_type),
        )
    except LanguageModelError:
        return ""
    return " ".join(answer.text.split())[:MAX_TEXT]
