"""`Reverie`, the synchronous client, and `Session`, a session as a context manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from reverie.client.async_client import AsyncSession, Role
from reverie.client.portal import BlockingPortal
from reverie.client.sync_activity import SyncActivityCalls
from reverie.client.sync_administration import SyncAdministrationCalls
from reverie.client.sync_graph import SyncGraphCalls
from reverie.client.sync_memories import SyncMemoryCalls
from reverie.client.sync_streams import SyncStreamCalls

if TYPE_CHECKING:
    from types import TracebackType

    from reverie.contracts.context import PreflowResponse
    from reverie.contracts.sessions import AppendTurnsResponse, EndSessionResponse


class Session:
    """A session; `Reverie.session` makes it. As `AsyncSession`, without `await`."""

    def __init__(self, session: AsyncSession, portal: BlockingPortal) -> None:
        self._session = session
        self._portal = portal

    def __enter__(self) -> Session:
        self._portal.run(self._session.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._portal.run(self._session.__aexit__(kind, error, trace))

    @property
    def id(self) -> UUID:
        """The session's."""
        return self._session.id

    @property
    def scope(self) -> str:
        """Where its memories go."""
        return self._session.scope

    @property
    def context(self) -> str:
        """What to know before starting, as fenced Markdown."""
        return self._session.context

    @property
    def end_result(self) -> EndSessionResponse | None:
        """What the end answered."""
        return self._session.end_result

    @property
    def summary(self) -> str | None:
        """What will be said of it at its end."""
        return self._session.summary

    @summary.setter
    def summary(self, text: str | None) -> None:
        self._session.summary = text

    def append_turn(
        self,
        role: Role,
        content: str,
        *,
        tool: str | None = None,
        external_id: str | None = None,
    ) -> AppendTurnsResponse:
        """Adds a message. One with an `external_id` that is known counts as a duplicate."""
        return self._portal.run(
            self._session.append_turn(role, content, tool=tool, external_id=external_id)
        )

    def preflow(self, query: str, **fields: Any) -> PreflowResponse:
        """What to know for the next turn, without what was given before."""
        return self._portal.run(self._session.preflow(query, **fields))


class Reverie(
    SyncMemoryCalls, SyncGraphCalls, SyncActivityCalls, SyncAdministrationCalls, SyncStreamCalls
):
    """Reverie, as `AsyncReverie` has it, for code that does not await.

    with Reverie("http://127.0.0.1:3456", key) as reverie:
        reverie.remember("Deploys go through staging first.", kind="convention")
        prompt = reverie.memory_block("how do we deploy?")
    """

    def session(
        self,
        agent: str,
        *,
        project: str | None = None,
        user: str | None = None,
        branch: str | None = None,
        external_id: str | None = None,
    ) -> Session:
        """A session that starts with the block and ends with it, also where the block fails."""
        return Session(
            self._reverie.session(
                agent, project=project, user=user, branch=branch, external_id=external_id
            ),
            self._portal,
        )
