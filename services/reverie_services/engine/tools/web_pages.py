"""Fetches public web pages as text."""

from __future__ import annotations

import asyncio
import codecs
import ipaddress
import re
import socket
from collections.abc import AsyncIterable
from contextlib import suppress
from urllib.parse import urlsplit

import aiohttp

MAX_PAGE_BYTES = 1024 * 1024
PAGE_SECONDS = 20.0
_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1[^>]*>|</\1[^>]*\Z|\Z)|<[a-z/!?][^>]*(?:>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
"""What is no text of a page. What is not closed goes to the end, so each part is read once."""
_SLOW_CHARSETS = {"idna", "punycode"}


class _PublicResolver(aiohttp.ThreadedResolver):
    """Resolves names to public addresses only: no page may reach into the network of the engine."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        found = await super().resolve(host, port, family)
        public = [entry for entry in found if ipaddress.ip_address(entry["host"]).is_global]
        if not public:
            raise OSError(f"{host} is no public address")
        return public


async def fetch_page(url: str) -> str:
    """The text of a web page. Raises `ValueError` for an address that is not public."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("it must begin with http:// or https://")
    with suppress(ValueError):
        if not ipaddress.ip_address(parts.hostname).is_global:
            raise OSError(f"{parts.hostname} is no public address")
    connector = aiohttp.TCPConnector(resolver=_PublicResolver())
    timeout = aiohttp.ClientTimeout(total=PAGE_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as http,
            # A redirect to an address in numbers would pass by the resolver.
            http.get(url, allow_redirects=False) as response,
        ):
            if "Location" in response.headers:
                return f"It moved to {response.headers['Location']}"
            body, is_whole = await read_at_most(response.content.iter_any(), MAX_PAGE_BYTES)
            charset = response.charset or "utf-8"
    except aiohttp.ClientError as error:
        raise ValueError(f"the page does not answer ({type(error).__name__})") from error
    text = await asyncio.to_thread(extract_page_text, body, charset)
    return text if is_whole else f"(only the first {MAX_PAGE_BYTES} bytes of it)\n{text}"


async def read_at_most(chunks: AsyncIterable[bytes], limit: int) -> tuple[bytes, bool]:
    """The first bytes of a stream, and whether they are all of it."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            break
    return bytes(body[:limit]), len(body) <= limit


def extract_page_text(body: bytes, charset: str) -> str:
    """The text of a page, without tags. A charset that is unknown is read as UTF-8."""
    try:
        known = charset if codecs.lookup(charset).name not in _SLOW_CHARSETS else "utf-8"
        page = body.decode(known, "replace")
    except (LookupError, UnicodeError):
        page = body.decode("utf-8", "replace")
    lines = (" ".join(line.split()) for line in _TAG.sub(" ", page).splitlines())
    return "\n".join(line for line in lines if line)
