"""Files over gRPC: exports go out and imports come in by the piece, as over REST."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientTimeout

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.problems import problem_of
from reverie.domain.errors import Unavailable
from reverie.mcp.rest import parameters, problem_in
from reverie.recall.rpc_calls import Own, fields_of, headers_of, message
from reverie.recall.rpc_errors import refuse

PIECE = 256 * 1024
"""Bytes of a piece at most."""
_PATIENCE = ClientTimeout(total=None, sock_connect=5.0)
_JSON_LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Carrying:
    """The two calls, made to the gateway itself."""

    own: Own

    async def export(self, request: pb.ExportRequest, context: Any) -> AsyncIterator[pb.Piece]:
        """`Export`: ended by UNAVAILABLE where it breaks off, so what came is not whole then."""
        where = f"{self.own.url}/v1/export{parameters(fields_of(request))}"
        headers = headers_of(context)
        try:
            async with self.own.http.get(where, headers=headers, timeout=_PATIENCE) as answer:
                await _checked(answer, context)
                async for data in answer.content.iter_chunked(PIECE):
                    yield pb.Piece(data=data)
        except (ClientError, TimeoutError, OSError):
            await refuse(context, problem_of(Unavailable("the export", "it broke off: ask again")))

    async def take(self, pieces: AsyncIterator[pb.ImportPiece], context: Any) -> pb.Imported:
        """`Import`: sent again, it changes nothing that it changed before."""
        first = await anext(pieces, pb.ImportPiece())
        asked = fields_of(first)
        kind = asked.pop("kind", _JSON_LINES)
        asked.pop("data", None)
        where = f"{self.own.url}/v1/import{parameters(asked)}"
        headers = {**headers_of(context), "Content-Type": kind}
        try:
            async with self.own.http.post(
                where, data=_data(first, pieces), headers=headers, timeout=_PATIENCE
            ) as answer:
                await _checked(answer, context)
                done: pb.Imported = message(pb.Imported, await answer.json())
                return done
        except (ClientError, TimeoutError, OSError):
            await refuse(context, problem_of(Unavailable("the import", "it broke off: send again")))


async def _data(
    first: pb.ImportPiece, pieces: AsyncIterator[pb.ImportPiece]
) -> AsyncIterator[bytes]:
    if first.data:
        yield first.data
    async for one in pieces:
        if one.data:
            yield one.data


async def _checked(answer: ClientResponse, context: Any) -> None:
    if answer.status >= 400:
        await refuse(context, problem_in(answer.status, await answer.json(content_type=None)))
