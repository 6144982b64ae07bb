"""What a handler gets (`Call`) and gives (`Reply`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from uuid import UUID

from pydantic import BaseModel

from reverie.domain.access import Principal
from reverie.domain.errors import Invalid, Unauthenticated
from reverie.domain.idempotency import StoredReply
from reverie.runtime.streams import Streamed


async def free(_: int) -> None:
    """Nothing is limited."""


Body = TypeVar("Body")
Params = TypeVar("Params")
JSON = "application/json"
AfterReply = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Call(Generic[Body, Params]):
    """One request, read and validated. `Call[Remember, None]` has a body and no query.

    `reached_at`: the base URL of this process, as the network has it; `raw`: the body as it came,
    for who checks a signature; `spend` counts memories that a stream brings.
    """

    body: Body
    query: Params
    path: Mapping[str, str]
    headers: Mapping[str, str]
    trace_id: str
    idempotency_key: str | None = None
    holder: Principal | None = None
    later: list[AfterReply] = field(default_factory=list)
    stream: AsyncIterator[bytes] | None = None
    raw: bytes = b""
    reached_at: str = ""
    spend: Callable[[int], Awaitable[None]] = free

    @property
    def principal(self) -> Principal:
        """Who asks. Raises `Unauthenticated` on an open route."""
        if self.holder is None:
            raise Unauthenticated
        return self.holder

    def uuid(self, name: str) -> UUID:
        """A part of the path as a UUID; raises `Invalid` naming it."""
        try:
            return UUID(self.path[name])
        except ValueError:
            raise Invalid(name, "is not a UUID") from None

    def after(self, work: AfterReply) -> None:
        """Runs `work` once the reply has left; shutdown waits for it, its failure is logged."""
        self.later.append(work)


@dataclass(frozen=True)
class Reply:
    """An answer with a status or headers of its own; bytes are sent as they are."""

    status: int = 200
    body: BaseModel | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Call[Any, Any]], Awaitable[BaseModel | Reply | Streamed]]


def rendered(result: BaseModel | Reply) -> StoredReply:
    """A handler's result as it goes over the wire."""
    reply = result if isinstance(result, Reply) else Reply(body=result)
    if isinstance(reply.body, BaseModel):
        body = reply.body.model_dump_json(by_alias=True).encode()
        return StoredReply(reply.status, body, {"Content-Type": JSON, **reply.headers})
    return StoredReply(reply.status, reply.body or b"", dict(reply.headers))
