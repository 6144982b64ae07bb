"""Renders a message with its attached files and images as one text, and takes them off again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.contracts.engine import PostMessageRequest
from reverie.domain.core.errors import InvalidInput
from reverie.domain.formats.attachments import FILE_MARK, IMAGE_MARK, NO_IMAGE
from reverie.domain.formats.pictures import detect_raster_type

_UNDESCRIBED = re.compile(r"\[image: (image/[a-z]+)\]")


def render_message(body: PostMessageRequest) -> str:
    """The text, followed by its attached files, and a line for each image."""
    files = [f"{FILE_MARK}{name}]\n{content}" for name, content in body.files.items()]
    images = [f"{IMAGE_MARK}{image.media_type}]" for image in body.images]
    return "".join([body.text, *files, *images])


def check_images(body: PostMessageRequest) -> None:
    """Raises `InvalidInput` for an image that is not what it is declared as."""
    for number, image in enumerate(body.images):
        found = detect_raster_type(image.data)
        if found is None:
            raise InvalidInput(f"images.{number}.data", NO_IMAGE)
        if found != image.media_type:
            raise InvalidInput(f"images.{number}.media_type", f"is {found} by its bytes")


def leave_attachments(text: str) -> str:
    """The text before the first file and image: the person's own words."""
    return text.partition(FILE_MARK)[0].partition(IMAGE_MARK)[0]


def has_undescribed(text: str) -> bool:
    """Whether an image of the message has no description yet."""
    return _UNDESCRIBED.search(text) is not None


def insert_descriptions(text: str, descriptions: Sequence[str]) -> str:
    """The text with a description beside the type of each image, in order."""
    lines = iter(" ".join(line.split()).replace("]", ")") for line in descriptions)

    def describe(match: re.Match[str]) -> str:
        line = next(lines, "")
        return f"[image: {match[1]}, {line}]" if line else match[0]

    return _UNDESCRIBED.sub(describe, text)
