"""`Reverie`: typed calls to a gateway, for code that does not await."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from reverie.client.portal import Portal
from reverie.client.session import AsyncSession, Role
from reverie.client.sync_administration import SyncAdministration
from reverie.client.sync_events import SyncStreams
from reverie.client.sync_graph import SyncGraph
from reverie.client.sync_memories import SyncMemories
from reverie.client.sync_work import SyncWork

if TYPE_CHECKING:
    from types import TracebackType

    from reverie.contracts.preflow import PreflowAnswer
    from reverie.contracts.sessions import AppendedTurns, EndedSession


class Session:
    """A session; `Reverie.session` makes it. As `AsyncSession`, without `await`."""

    def __init__(self, session: AsyncSession, portal: Portal) -> None:
        self._session = session
        self._portal = portal

    def __enter__(self) -> Session:
        self._portal.wait(self._session.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._portal.wait(self._session.__aexit__(kind, error, trace))

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
    def ended(self) -> EndedSession | None:
        """What the end answered."""
        return self._session.ended

    @property
    def summary(self) -> str | None:
        """What will be said of it at its end."""
        return self._session.summary

    @summary.setter
    def summary(self, text: str | None) -> None:
        self._session.summary = text

    def turn(
        self,
        role: Role,
        content: str,
        *,
        tool: str | None = None,
        external_id: str | None = None,
    ) -> AppendedTurns:
        """Adds a message. One with an `external_id` that is known counts as a duplicate."""
        return self._portal.wait(
            self._session.turn(role, content, tool=tool, external_id=external_id)
        )

    def before(self, query: str, **fields: Any) -> PreflowAnswer:
        """What to know for the next turn, without what was given before."""
        return self._portal.wait(self._session.before(query, **fields))


class Reverie(SyncMemories, SyncGraph, SyncWork, SyncAdministration, SyncStreams):
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
