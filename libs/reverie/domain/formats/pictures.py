"""Pictures: their type by their bytes, the text of an SVG, and their line in a memory's content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from reverie.domain.core.errors import InvalidInput, NotFound

SVG = "image/svg+xml"
EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    SVG: "svg",
}
"""The media types of pictures, and the ends of their file names."""
HASH_DIGITS = 12
"""The digits of a picture's hash in the memory's content."""
MAX_TEXT = 8_000
MAX_TAGS = 500_000
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_TEXT_TAGS = frozenset({"text", "title", "desc"})
_MAX_HEAD = 4_096
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


def detect_raster_type(data: bytes) -> str | None:
    """PNG, JPEG, GIF or WebP, by the bytes; None for anything else."""
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def detect_media_type(data: bytes) -> str:
    """The type of a picture, by its bytes. Raises `InvalidInput` for anything else."""
    if (media_type := detect_raster_type(data)) is not None:
        return media_type
    if b"<svg" in data[:_MAX_HEAD] and _parse_svg(data) is not None:
        return SVG
    raise InvalidInput("data", "is no PNG, JPEG, GIF, WebP or SVG picture")


def extract_svg_text(data: bytes) -> str:
    """The texts, titles and descriptions of an SVG, in their order."""
    texts: list[str] = []
    root = _parse_svg(data)
    waiting = [] if root is None else [root]
    while waiting:
        element = waiting.pop()
        if isinstance(element.tag, str) and element.tag.rpartition("}")[2] in _TEXT_TAGS:
            # With what is inside it, which is not looked at again: the time stays linear.
            texts.append(" ".join("".join(element.itertext()).split()))
        else:
            waiting.extend(reversed(element))
    return " ".join(dict.fromkeys(filter(None, texts)))[:MAX_TEXT]


def _parse_svg(data: bytes) -> ElementTree.Element | None:
    """The root of an SVG; None if it is none, or defines entities, which could grow without end.

    Raises `InvalidInput` for one with too many tags, each of which takes memory.
    """
    if b"<!ENTITY" in data:
        return None
    if data.count(b"<") > MAX_TAGS:
        raise InvalidInput("data", f"is an SVG with more than {MAX_TAGS} tags")
    try:
        root = ElementTree.fromstring(data)  # noqa: S314 (without entities nothing expands)
    except (ElementTree.ParseError, ValueError, LookupError):
        return None
    return root if root.tag.rpartition("}")[2] == "svg" else None


def add_picture_line(content: str, picture_hash: str, name: str | None, text: str) -> str:
    """The content of a memory with the line of a picture, by which it is found."""
    label = " ".join(filter(None, (name, text))).strip()
    line = " ".join(f"{_mark(picture_hash)} {label}".split())
    kept = remove_picture_line(content, picture_hash)
    return f"{kept}\n\n{line}"


def remove_picture_line(content: str, picture_hash: str) -> str:
    """The content without the line of a picture."""
    lines = content.split("\n")
    number = _find_line(lines, picture_hash)
    if number is None:
        return content
    before, rest = "\n".join(lines[:number]), "\n".join(lines[number + 1 :])
    return "\n\n".join(filter(None, (before.rstrip("\n"), rest.lstrip("\n"))))


def find_picture_label(content: str, picture_hash: str) -> str:
    """The name and the text of a picture, as the content of its memory says; empty without one."""
    lines = content.split("\n")
    number = _find_line(lines, picture_hash)
    return "" if number is None else lines[number].removeprefix(_mark(picture_hash)).strip()


def _find_line(lines: Sequence[str], picture_hash: str) -> int | None:
    mark = _mark(picture_hash)
    # The last line that begins so: a person may mention the picture before it.
    return next((n for n in reversed(range(len(lines))) if lines[n].startswith(mark)), None)


def parse_digest(text: str) -> bytes:
    """The hash of a picture, as a path names it. Raises `NotFound`."""
    if _DIGEST.fullmatch(text) is None:
        raise NotFound("picture", text[:64])
    return bytes.fromhex(text)


def _mark(picture_hash: str) -> str:
    return f"[picture {picture_hash[:HASH_DIGITS]}]"
