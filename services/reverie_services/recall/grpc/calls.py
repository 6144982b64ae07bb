"""Handles gRPC calls as REST calls of the gateway; exports and imports are streamed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.operations import PATH_VARIABLE, Operation
from reverie.mcp.rest_calls import (
    RestCallError,
    call_rest_any,
    encode_query,
    parse_rest_problem,
)
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.in_process_rest import InProcessRestClient, read_content
from reverie_services.recall.grpc.messages import (
    decode_fields,
    encode_message,
    forwarded_headers,
    pop_idempotency_key,
)

CHUNK_BYTES = 256 * 1024
"""The size limit of one message of an export."""
_JSON_LINES = "application/x-ndjson"

UnaryHandler = Callable[[Any, Any], Awaitable[Any]]


def create_unary_handler(
    dispatcher: Dispatcher, operation: Operation, response_type: type[Any]
) -> UnaryHandler:
    """The handler of an operation."""

    async def handle(request: Any, context: Any) -> Any:
        fields = decode_fields(request)
        headers = pop_idempotency_key(fields)
        if operation.uses_if_match and "version" in fields:
            headers["If-Match"] = f'"{fields.pop("version")}"'
        # An unset variable becomes "-", which nothing is named: the answer is `not_found`.
        path = PATH_VARIABLE.sub(
            lambda name: quote(str(fields.pop(name[1], "")), safe="") or "-", operation.path
        )
        query, body = operation.split_fields(fields)
        result = await call_rest_any(
            InProcessRestClient(dispatcher, forwarded_headers(context)),
            operation.method,
            path,
            query,
            body if body or operation.method == "POST" else None,
            headers,
        )
        if operation.name == "remember_batch":
            items = result["items"]
            result = {
                "items": [{"problem" if "code" in item else "remembered": item} for item in items]
            }
        return encode_message(response_type, result)

    return handle


@dataclass(frozen=True)
class TransferServicer:
    """The calls `Export` and `Import`."""

    dispatcher: Dispatcher

    async def export_file(
        self, request: pb.ExportRequest, context: Any
    ) -> AsyncIterator[pb.ExportChunk]:
        """`Export`: a call that fails after its first message sent only a part."""
        url = f"/v1/export{encode_query(decode_fields(request))}"
        async with self.dispatcher.open("GET", url, forwarded_headers(context)) as response:
            await check_response(response)
            if response.chunks is None:
                yield pb.ExportChunk(data=response.body)
                return
            async for chunk in response.chunks:
                for start in range(0, len(chunk), CHUNK_BYTES):
                    yield pb.ExportChunk(data=chunk[start : start + CHUNK_BYTES])

    async def import_file(
        self, chunks: AsyncIterator[pb.ImportChunk], context: Any
    ) -> pb.ImportResponse:
        """`Import`: sent again, it changes nothing."""
        first_chunk = await anext(chunks, pb.ImportChunk())
        fields = decode_fields(first_chunk)
        headers = {**forwarded_headers(context), "Content-Type": fields.pop("kind", _JSON_LINES)}
        fields.pop("data", None)

        async def iterate_data() -> AsyncIterator[bytes]:
            if first_chunk.data:
                yield first_chunk.data
            async for chunk in chunks:
                if chunk.data:
                    yield chunk.data

        url = f"/v1/import{encode_query(fields)}"
        async with self.dispatcher.open("POST", url, headers, iterate_data()) as response:
            await check_response(response)
            imported: pb.ImportResponse = encode_message(
                pb.ImportResponse, json.loads(await read_content(response))
            )
            return imported


async def check_response(response: OutgoingResponse) -> None:
    """Raises `RestCallError` if a call failed."""
    if response.status >= 400:
        content = await read_content(response)
        try:
            body = json.loads(content)
        except ValueError:
            body = None
        raise RestCallError(parse_rest_problem(response.status, body))
