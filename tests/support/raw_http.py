"""Sends requests that no HTTP client would send."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit


async def answer_to(
    url: str, method: str, path: str, headers: str, body: bytes = b""
) -> tuple[bytes, dict[str, Any]]:
    """The first line of the answer and its document, to a request whose body does not end."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: identity\r\n"
        writer.write(f"{head}{headers}\r\n".encode("latin-1") + body)
        async with asyncio.timeout(60):
            first = await reader.readline()
            length = 0
            while line := (await reader.readline()).strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            content = await reader.readexactly(length)
            return first.strip(), json.loads(content) if content.startswith(b"{") else {}
    finally:
        writer.close()
