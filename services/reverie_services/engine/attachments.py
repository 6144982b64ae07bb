"""How a message and the files that were given with it become one text, and the message alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.contracts.engine import PostMessageRequest
from reverie.domain.core.errors import InvalidInput
from reverie.domain.formats.attachments import FILE_MARK, IMAGE_MARK, NO_IMAGE
from reverie.domain.formats.pictures import detect_raster_type

_UNDESCRIBED = re.compile(r"\[image: (image/[a-z]+)\]")


def render_message(body: PostMessageRequest) -> str:
    """The text, followed by the files that were given with it, and a line for each image."""
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
    """The person's own words: what stands before the first file and image."""
    return text.partition(FILE_MARK)[0].partition(IMAGE_MARK)[0]


def has_undescribed(text: str) -> bool:
    """Whether nobody has said yet what an image of the message shows."""
    return _UNDESCRIBED.search(text) is not None


def insert_descriptions(text: str, descriptions: Sequence[str]) -> str:
    """The text, with what its images show, in their order, beside their types."""
    lines = iter(" ".join(line.split()).replace("]", ")") for line in descriptions)

    def describe(match: re.Match[str]) -> str:
        line = next(lines, "")
        return f"[image: {match[1]}, {line}]" if line else match[0]

    return _UNDESCRIBED.sub(describe, text)
