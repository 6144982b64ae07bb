"""Answers whose body is a picture."""

from __future__ import annotations

from typing import Any

from reverie.domain.formats.pictures import EXTENSIONS
from reverie.runtime.http.calls import Call, Reply

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""A picture is never a page: an SVG could hold scripts."""


def wants_bytes(call: Call[Any, Any]) -> bool:
    """Whether a caller asks for the bytes themselves, and not for JSON."""
    return call.headers.get("Accept", "").startswith("image/")


def build_picture_reply(data: bytes, media_type: str, name: str) -> Reply:
    """The bytes of a picture, as a file to save."""
    disposition = f'attachment; filename="{name}.{EXTENSIONS[media_type]}"'
    headers = {"Content-Type": media_type, "Content-Disposition": disposition, **_HEADERS}
    return Reply(body=data, headers=headers)
