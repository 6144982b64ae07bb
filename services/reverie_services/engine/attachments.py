"""How a message and the files that were given with it become one text, and the message alone."""

from __future__ import annotations

from reverie.contracts.engine import PostMessageRequest

_FILE, _IMAGE = "\n\n[file ", "\n\n[image: "


def render_message(body: PostMessageRequest) -> str:
    """The text, followed by the files that were given with it, and a line for each image."""
    files = [f"{_FILE}{name}]\n{content}" for name, content in body.files.items()]
    images = [f"{_IMAGE}{image.media_type}]" for image in body.images]
    return "".join([body.text, *files, *images])


def leave_attachments(text: str) -> str:
    """The person's own words: what stands before the first file and image."""
    return text.partition(_FILE)[0].partition(_IMAGE)[0]
