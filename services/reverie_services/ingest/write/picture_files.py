"""Checks the bytes of a picture that somebody sends, and redacts an SVG."""

from __future__ import annotations

import base64
import binascii

from reverie.domain.core.errors import InvalidInput, PayloadTooLarge
from reverie.domain.formats.pictures import SVG, detect_media_type
from reverie.domain.redaction.redactor import Redactor


def decode_picture(text: str, limit: int, redactor: Redactor) -> tuple[bytes, str, int]:
    """The bytes and the type of a picture in base64, and the secrets that were replaced in an SVG.

    Raises `InvalidInput` or `PayloadTooLarge`.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("data", "is not base64") from None
    if len(data) > limit:
        raise PayloadTooLarge("data", len(data), limit, "picture_limit")
    media_type = detect_media_type(data)
    if media_type != SVG:
        return data, media_type, 0
    try:
        redacted = redactor.redact(data.decode())
    except UnicodeDecodeError:
        raise InvalidInput("data", "is an SVG in another encoding than UTF-8") from None
    return redacted.text.encode(), media_type, redacted.count
