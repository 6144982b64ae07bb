"""Reads a form with files (multipart/form-data)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from email.message import Message
from email.utils import collapse_rfc2231_value

from multidict import MultiDict

from reverie.domain.core.errors import MalformedInput
from reverie.runtime.http.exchange import IncomingRequest
from reverie.runtime.http.streaming import read_body
from reverie_services.console.requests import FORM_LIMIT, FORM_SECONDS

MULTIPART = "multipart/form-data"
_MAX_PARTS = 200
_MAX_HEAD = 4_096
"""Bytes of the headers of a part: the time to read them grows with their square."""

FormFile = tuple[str, bytes]
"""A file by its name."""


async def read_upload(
    request: IncomingRequest, limit: int
) -> tuple[MultiDict[str], list[FormFile]]:
    """The fields and files of a message, of at most `limit` bytes beside its fields.

    Raises `MalformedInput`, and `PayloadTooLarge` with the setting that allows more.
    """
    try:
        async with asyncio.timeout(FORM_SECONDS):
            body = await read_body(request, limit + FORM_LIMIT, "large_body_limit")
    except TimeoutError:
        raise MalformedInput(f"the form took longer than {FORM_SECONDS:g} seconds") from None
    fields, files = MultiDict[str](), list[FormFile]()
    try:
        for headers, data in _split_parts(request.headers.get("Content-Type", ""), body):
            name = str(headers.get_param("name", "", "Content-Disposition"))
            # `get_filename` would cut the white space around it.
            file_name = headers.get_param("filename", None, "Content-Disposition")
            if file_name is None:
                fields.add(name, data.decode())
            elif file_name or data:
                files.append((collapse_rfc2231_value(file_name), data))
    except ValueError:
        raise MalformedInput("the form cannot be read") from None
    return fields, files


def _split_parts(content_type: str, body: bytes) -> Iterator[tuple[Message, bytes]]:
    """The parts of a body, each with its headers. Raises `ValueError`."""
    boundary = _parse_header("Content-Type", content_type).get_boundary()
    if not boundary:
        raise ValueError("no boundary")
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary.encode())[1:]
    if not parts or len(parts) > _MAX_PARTS or not parts[-1].startswith(b"--"):
        raise ValueError("not closed")
    for part in parts[:-1]:
        head, _, data = part.partition(b"\r\n\r\n")
        if len(head) > _MAX_HEAD:
            raise ValueError("headers too long")
        lines = [line for line in head.decode().split("\r\n") if line]
        [disposition] = [line for line in lines if line.lower().startswith("content-disposition:")]
        yield _parse_header("Content-Disposition", disposition.partition(":")[2].strip()), data


def _parse_header(name: str, value: str) -> Message:
    message = Message()
    message[name] = value
    return message
