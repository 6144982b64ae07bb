"""What people give with a message: texts and images, told apart by their bytes."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from reverie.domain.core.errors import InvalidInput
from reverie.domain.formats.pictures import detect_raster_type

FILE_MARK, IMAGE_MARK = "\n\n[file ", "\n\n[image: "
"""What begins a text and an image in a message, which holds its own words first."""
NO_IMAGE = "is no PNG, JPEG, GIF or WebP image"
_MARKED = re.compile(r"\n\n\[(?:file ([^\]\n]*)\]\n|image: ([^\]\n]*)\])")


@dataclass(frozen=True)
class Attachments:
    """Texts by their names, and images with their media types."""

    files: dict[str, str] = field(default_factory=dict)
    images: list[tuple[str, bytes]] = field(default_factory=list)

    def add(self, name: str, data: bytes) -> None:
        """Adds a file, of whatever name. Raises `InvalidInput` for what agents cannot read."""
        media_type = detect_raster_type(data)
        if media_type is not None:
            self.images.append((media_type, data))
            return
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise InvalidInput("attachments", f"{name} is no text in UTF-8, and {NO_IMAGE}")
        self.files[_find_free_name(self.files, name)] = text

    def encode(self) -> dict[str, Any]:
        """The fields of a message that brings these."""
        images = [
            {"media_type": kind, "data": base64.b64encode(data).decode()}
            for kind, data in self.images
        ]
        return {"files": self.files, "images": images}


def _find_free_name(taken: Collection[str], name: str) -> str:
    """The name without folders, with a number behind it if another one has it."""
    base = re.split(r"[\\/]", name)[-1].translate(dict.fromkeys([*range(32), ord("]")])) or "file"
    names = [base, *(f"{base} ({number})" for number in range(2, len(taken) + 2))]
    return next(each for each in names if each not in taken)


@dataclass(frozen=True)
class MessageParts:
    """A message as it is shown: its own words, its texts by name, what is said of its images."""

    text: str
    files: list[tuple[str, str]]
    images: list[str]


def split_message(content: str) -> MessageParts:
    """Takes a message with its attachments apart."""
    text, *rest = _MARKED.split(content)
    files, images = [], []
    for name, image, following in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if name is not None:
            files.append((name, following))
        else:
            images.append(image.partition(", ")[2])
    return MessageParts(text, files, images)
