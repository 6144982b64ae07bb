"""REST calls of the gRPC and MCP interfaces and of the console, handled within the process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reverie.domain.core.errors import PayloadTooLarge
from reverie.mcp.rest_calls import RestQuery, encode_query
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import OutgoingResponse

MAX_FILE_BYTES = 256 * 1024
"""The size limit of a response that is not JSON, such as an export."""


@dataclass(frozen=True)
class InProcessRestClient:
    """A `RestClient` for one caller, whose API key is in `headers`."""

    dispatcher: Dispatcher
    headers: Mapping[str, str]

    async def __call__(
        self,
        method: str,
        path: str,
        query: RestQuery | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """The status and the decoded body. Raises `PayloadTooLarge` for a file that is too long."""
        request_headers = {**self.headers, **(headers or {})}
        data = b""
        if body is not None:
            is_jsonl = isinstance(body, str)
            content_type = "application/x-ndjson" if is_jsonl else "application/json"
            request_headers["Content-Type"] = content_type
            data = (body if is_jsonl else json.dumps(body)).encode()
        url = f"{path}{encode_query(query)}"
        async with self.dispatcher.open(method, url, request_headers, data) as response:
            content = await read_content(response)
        try:
            return response.status, json.loads(content) if content else None
        except ValueError:
            return response.status, content.decode("utf-8", "replace")


async def read_content(response: OutgoingResponse) -> bytes:
    """The whole body of a response."""
    if response.chunks is None:
        return response.body
    content_type = response.headers.get("Content-Type", "").partition(";")[0]
    is_json = content_type == "application/json" or content_type.endswith("+json")
    content = bytearray()
    async for chunk in response.chunks:
        content += chunk
        if len(content) > MAX_FILE_BYTES and not is_json:
            raise PayloadTooLarge(
                "the file", len(content), MAX_FILE_BYTES, "use `reverie export`, or fewer scopes"
            )
    return bytes(content)
