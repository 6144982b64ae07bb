"""A session as a block of code: started, told what is said, ended."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.memories import Memories
from reverie.client.work import Work
from reverie.domain.errors import ReverieError

if TYPE_CHECKING:
    from types import TracebackType

    from reverie.contracts.preflow import PreflowAnswer
    from reverie.contracts.sessions import AppendedTurns, EndedSession, StartedSession

Role = Literal["user", "assistant", "tool", "system"]


class AsyncSession:
    """A session; `AsyncReverie.session` makes it.

    `id`, `scope` and `context` (what to know before starting, fenced) are there inside the block.
    `summary` may be set before the end; `ended` is what the end answered.
    """

    def __init__(self, reverie: Sessions, **start: Any) -> None:
        self._reverie = reverie
        self._start = start
        self._started: StartedSession | None = None
        self.summary: str | None = None
        self.ended: EndedSession | None = None

    async def __aenter__(self) -> AsyncSession:
        self._started = await self._reverie.start_session(**self._start)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self._end()
            return
        # What went wrong in the block is what its caller should see.
        with suppress(ReverieError):
            await self._end()

    async def _end(self) -> None:
        self.ended = await self._reverie.end_session(self.id, summary=self.summary)

    @property
    def id(self) -> UUID:
        """The session's."""
        return self._known.session

    @property
    def scope(self) -> str:
        """Where its memories go."""
        return self._known.scope

    @property
    def context(self) -> str:
        """What to know before starting, as fenced Markdown."""
        return self._known.context

    async def turn(
        self,
        role: Role,
        content: str,
        *,
        tool: str | None = None,
        external_id: str | None = None,
    ) -> AppendedTurns:
        """Adds a message. One with an `external_id` that is known counts as a duplicate."""
        told = {"role": role, "content": content, "tool": tool, "external_id": external_id}
        turn = {name: value for name, value in told.items() if value is not None}
        return await self._reverie.append_turns(self.id, [turn])

    async def before(self, query: str, **fields: Any) -> PreflowAnswer:
        """What to know for the next turn, without what was given before."""
        return await self._reverie.preflow(self.id, query, **fields)

    @property
    def _known(self) -> StartedSession:
        if self._started is None:
            raise RuntimeError("the session has not started: use it in a `with` block")
        return self._started


class Sessions(Memories, Work):
    """Sessions as blocks of code."""

    def session(
        self,
        agent: str,
        *,
        project: str | None = None,
        user: str | None = None,
        branch: str | None = None,
        external_id: str | None = None,
    ) -> AsyncSession:
        """A session that starts with the block and ends with it, also where the block fails."""
        start = {"project": project, "user": user, "branch": branch, "external_id": external_id}
        return AsyncSession(self, agent=agent, **start)
