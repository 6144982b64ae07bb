"""Input (`Call`) and output (`Reply`) of a route handler."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from reverie.domain.access.principals import Principal
from reverie.domain.core.consistency import StoredReply
from reverie.domain.core.errors import Unauthenticated
from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR, Redactor
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import AfterReplyJob
from reverie.runtime.http.streaming import StreamingReply


async def unlimited(_: int) -> None:
    """Nothing is limited."""


Body = TypeVar("Body")
Params = TypeVar("Params")
JSON_MEDIA_TYPE = "application/json"


@dataclass(frozen=True)
class Call(Generic[Body, Params]):
    """One request, read and validated. `Call[Remember, None]` has a body and no query.

    `dispatcher` makes calls of other routes within the process. `raw_body` is the body as it
    came, to check its signature. `redactor` redacts what a write stores. `spend` counts memories
    that a stream brings.
    """

    body: Body
    query: Params
    path: Mapping[str, str]
    headers: Mapping[str, str]
    trace_id: str
    idempotency_key: str | None = None
    caller: Principal | None = None
    after_reply_jobs: list[AfterReplyJob] = field(default_factory=list)
    stream: AsyncIterator[bytes] | None = None
    raw_body: bytes = b""
    dispatcher: Dispatcher | None = None
    redactor: Redactor = CREDENTIAL_REDACTOR
    spend: Callable[[int], Awaitable[None]] = unlimited

    @property
    def principal(self) -> Principal:
        """The caller. Raises `Unauthenticated` on an open route."""
        if self.caller is None:
            raise Unauthenticated
        return self.caller

    def run_after_reply(self, job: AfterReplyJob) -> None:
        """Runs `job` once the reply has left; shutdown waits for it, its failure is logged."""
        self.after_reply_jobs.append(job)


@dataclass(frozen=True)
class Reply:
    """An answer with a status or headers of its own; bytes are sent as they are."""

    status: int = 200
    body: BaseModel | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


RouteHandler = Callable[[Call[Any, Any]], Awaitable[BaseModel | Reply | StreamingReply]]


def render_reply(result: BaseModel | Reply) -> StoredReply:
    """A handler's result as it goes over the wire."""
    reply = result if isinstance(result, Reply) else Reply(body=result)
    if isinstance(reply.body, BaseModel):
        body = reply.body.model_dump_json(by_alias=True).encode()
        return StoredReply(reply.status, body, {"Content-Type": JSON_MEDIA_TYPE, **reply.headers})
    return StoredReply(reply.status, reply.body or b"", dict(reply.headers))
