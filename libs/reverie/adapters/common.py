"""Common parts of the adapters: an agent's tools, batches of memories, and queued turns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from reverie.client import ApiError, AsyncReverie, Unavailable
from reverie.contracts.base import Problem

if TYPE_CHECKING:
    from reverie.client.parameters import RecallFields, RememberFields
    from reverie.contracts.memories.memories import RememberBatchResponse

T = TypeVar("T")

INSTRUCTIONS = (
    "You have a memory that outlives this conversation. Ask it by `recall` before you decide what"
    " was decided before; keep by `remember` what later conversations must know."
)
MAX_MEMORIES = 500
"""The most memories of a call."""
MAX_FORGOTTEN = 200
"""The most memories that a call forgets."""
MAX_TURNS = 100
"""The most turns of a call here."""
MAX_UNSENT_TURNS = 1_000
MAX_SESSIONS = 100
"""The most sessions whose state an adapter holds; turns queued for older ones are dropped."""

log = logging.getLogger("reverie.adapters")


def make_tools(client: AsyncReverie, scope: str | None) -> list[Callable[..., Any]]:
    """The tools `recall` and `remember`. `scope`: where memories are read and written."""

    async def recall(query: str) -> str:
        """Finds what is remembered about a question.

        Args:
            query: the question, in plain words.
        """
        scopes: RecallFields = {"scopes": [scope]} if scope else {}
        found = await client.recall_as_text(query, **scopes)
        return found or "Nothing is remembered about this."

    async def remember(content: str, kind: str = "lesson") -> str:
        """Keeps a statement for later conversations.

        Args:
            content: one statement that is understood by itself.
            kind: decision, convention, lesson, preference, bug, or another kind of memory.
        """
        fields: RememberFields = {"scope": scope} if scope else {}
        fields["kind"] = kind
        stored = await client.remember(content, **fields)
        return f"{stored.status}: {stored.id}"

    return [recall, remember]


async def forget_keys(client: AsyncReverie, scope: str, keys: Sequence[str]) -> None:
    """Forgets the active memories of keys."""
    for batch in split_batches(keys, MAX_FORGOTTEN):
        await client.forget_batch(scope=scope, keys=batch, status=["active"])


def check_stored(answer: RememberBatchResponse) -> None:
    """Raises `ApiError` for the first memory that was refused."""
    for item in answer.items:
        if isinstance(item, Problem):
            raise ApiError(item)


def split_batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in order, at most `size` at once."""
    return (items[start : start + size] for start in range(0, len(items), size))


class TurnQueue:
    """Sends the turns of one session in order. Turns that fail are sent with the next ones."""

    def __init__(self, client: AsyncReverie, agent: str, session: str | None) -> None:
        self._client, self._agent, self._session = client, agent, session
        self._unsent: list[dict[str, Any]] = []
        self._id: str | None = None
        self._lock = asyncio.Lock()

    async def send(self, turns: Sequence[dict[str, Any]], project: str | None) -> None:
        """Sends turns. A failure is logged, and the caller goes on."""
        self._unsent += turns
        # Concurrent calls would send the same turns twice, and drop others.
        async with self._lock:
            try:
                while batch := self._unsent[:MAX_TURNS]:
                    if self._id is None:
                        started = await self._client.start_session(
                            self._agent,
                            project=project,
                            external_id=self._session,
                            include_context=False,
                        )
                        self._id = str(started.session)
                    await self._client.append_turns(self._id, batch)
                    del self._unsent[: len(batch)]
            except (ApiError, Unavailable) as error:
                log.warning("the turns of session %s wait: %s", self._session, error)
                del self._unsent[:-MAX_UNSENT_TURNS]
