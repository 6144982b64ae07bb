"""Streams exports and imports over gRPC in chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientTimeout

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.problems import problem_from_error
from reverie.domain.core.errors import Unavailable
from reverie.mcp.rest_calls import encode_query, parse_rest_problem
from reverie_services.recall.grpc.errors import abort_with_problem
from reverie_services.recall.grpc.rest_bridge import (
    GatewayConnection,
    build_headers,
    decode_fields,
    encode_message,
)

CHUNK_BYTES = 256 * 1024
"""Bytes of a piece at most."""
_TIMEOUT = ClientTimeout(total=None, sock_connect=5.0)
_JSON_LINES = "application/x-ndjson"


@dataclass(frozen=True)
class TransferServicer:
    """The two calls, made to the gateway itself."""

    gateway: GatewayConnection

    async def export_file(self, request: pb.ExportRequest, context: Any) -> AsyncIterator[pb.Piece]:
        """`Export`: ended by UNAVAILABLE where it breaks off, so what came is not whole then."""
        url = f"{self.gateway.url}/v1/export{encode_query(decode_fields(request))}"
        headers = build_headers(context)
        try:
            async with self.gateway.http.get(url, headers=headers, timeout=_TIMEOUT) as response:
                await _check_response(response, context)
                async for data in response.content.iter_chunked(CHUNK_BYTES):
                    yield pb.Piece(data=data)
        except (ClientError, TimeoutError, OSError):
            await abort_with_problem(
                context, problem_from_error(Unavailable("the export", "it broke off: ask again"))
            )

    async def import_file(self, chunks: AsyncIterator[pb.ImportPiece], context: Any) -> pb.Imported:
        """`Import`: sent again, it changes nothing that it changed before."""
        first_chunk = await anext(chunks, pb.ImportPiece())
        fields = decode_fields(first_chunk)
        media_type = fields.pop("kind", _JSON_LINES)
        fields.pop("data", None)
        url = f"{self.gateway.url}/v1/import{encode_query(fields)}"
        headers = {**build_headers(context), "Content-Type": media_type}
        try:
            async with self.gateway.http.post(
                url, data=_iterate_data(first_chunk, chunks), headers=headers, timeout=_TIMEOUT
            ) as response:
                await _check_response(response, context)
                imported: pb.Imported = encode_message(pb.Imported, await response.json())
                return imported
        except (ClientError, TimeoutError, OSError):
            await abort_with_problem(
                context, problem_from_error(Unavailable("the import", "it broke off: send again"))
            )


async def _iterate_data(
    first_chunk: pb.ImportPiece, chunks: AsyncIterator[pb.ImportPiece]
) -> AsyncIterator[bytes]:
    if first_chunk.data:
        yield first_chunk.data
    async for chunk in chunks:
        if chunk.data:
            yield chunk.data


async def _check_response(response: ClientResponse, context: Any) -> None:
    if response.status >= 400:
        await abort_with_problem(
            context, parse_rest_problem(response.status, await response.json(content_type=None))
        )
