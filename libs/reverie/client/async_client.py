"""`AsyncReverie`, the asynchronous client, and `AsyncSession`, a session as a context manager."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.activity import ActivityCalls
from reverie.client.administration import AdministrationCalls
from reverie.client.documents import DocumentCalls
from reverie.client.engine import EngineCalls
from reverie.client.graph import GraphCalls
from reverie.client.memories import MemoryCalls
from reverie.client.streams import StreamCalls
from reverie.domain.core.errors import ReverieError

if TYPE_CHECKING:
    from reverie.contracts.context import PreflowResponse
    from reverie.contracts.sessions import (
        AppendTurnsResponse,
        EndSessionResponse,
        StartSessionResponse,
    )

Role = Literal["user", "assistant", "tool", "system"]


class AsyncSession:
    """A session; `AsyncReverie.session` makes it.

    `id`, `scope` and `context` (what to know before starting, fenced) are there inside the block.
    `summary` may be set before the end; `end_result` is what the end answered.
    """

    def __init__(self, reverie: SessionCalls, **start: Any) -> None:
        self._reverie = reverie
        self._start = start
        self._started: StartSessionResponse | None = None
        self.summary: str | None = None
        self.end_result: EndSessionResponse | None = None

    async def __aenter__(self) -> AsyncSession:
        self._started = await self._reverie.start_session(**self._start)
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            await self._end()
            return
        # The caller should see the error of the block.
        with suppress(ReverieError):
            await self._end()

    async def _end(self) -> None:
        self.end_result = await self._reverie.end_session(self.id, summary=self.summary)

    @property
    def id(self) -> UUID:
        """The session's."""
        return self._started_session.session

    @property
    def scope(self) -> str:
        """The scope of its memories."""
        return self._started_session.scope

    @property
    def context(self) -> str:
        """Returns the context for a start, as fenced Markdown."""
        return self._started_session.context

    async def append_turn(
        self,
        role: Role,
        content: str,
        *,
        tool: str | None = None,
        external_id: str | None = None,
    ) -> AppendTurnsResponse:
        """Adds a message. One with an `external_id` that is known counts as a duplicate."""
        fields = {"role": role, "content": content, "tool": tool, "external_id": external_id}
        turn = {name: value for name, value in fields.items() if value is not None}
        return await self._reverie.append_turns(self.id, [turn])

    async def preflow(self, query: str, **fields: Any) -> PreflowResponse:
        """Returns the memories for the next turn, without those given before."""
        return await self._reverie.preflow(self.id, query, **fields)

    @property
    def _started_session(self) -> StartSessionResponse:
        if self._started is None:
            raise RuntimeError("the session has not started: use it in a `with` block")
        return self._started


class SessionCalls(MemoryCalls, ActivityCalls):
    """Sessions as blocks of code."""

    def session(
        self,
        agent: str,
        *,
        project: str | None = None,
        user: str | None = None,
        branch: str | None = None,
        group: str | None = None,
        external_id: str | None = None,
    ) -> AsyncSession:
        """Opens a session for the block and ends it afterwards, even if the block fails."""
        start = {
            "project": project,
            "user": user,
            "branch": branch,
            "group": group,
            "external_id": external_id,
        }
        return AsyncSession(self, agent=agent, **start)


class AsyncReverie(
    SessionCalls, GraphCalls, AdministrationCalls, DocumentCalls, StreamCalls, EngineCalls
):
    """Reverie for code that awaits.

    `url` is the gateway's. `timeout` is in seconds, for one attempt. A call is made at most
    `max_attempts` times; a change carries an `Idempotency-Key`, so that it takes effect once.
    Every call raises `ApiError` if the gateway refuses it (`problem_code` is stable) and
    `Unavailable` if it does not answer. Lists are fetched page by page while they are iterated.

        async with AsyncReverie("http://127.0.0.1:3456", key) as reverie:
            await reverie.remember("Deploys go through staging first.", kind="convention")
            found = await reverie.recall("how do we deploy?")
            async with reverie.session("my-agent", project="shop") as session:
                await session.append_turn("user", "Deploy it, please.")
    """
