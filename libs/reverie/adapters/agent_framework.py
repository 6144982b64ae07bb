"""Memory for agents of Microsoft Agent Framework: a context provider, and a history.

`Agent(chat, context_providers=[ReverieContextProvider(client), ReverieHistoryProvider(client)])`
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any
from uuid import uuid4

from agent_framework import ContextProvider, HistoryProvider, Message, tool

# What a conversation that is given as a whole adds to its history: the framework's own rule.
from agent_framework._sessions import filter_new_messages

from reverie.adapters.common import INSTRUCTIONS, MAX_SESSIONS, TurnQueue, make_tools
from reverie.client import AsyncReverie

_ROLES = {"user", "assistant", "tool", "system"}


class ReverieContextProvider(ContextProvider):
    """Adds the context block before each run, and offers the tools `recall` and `remember`.

    A session of the framework is one session here. A memory that does not answer fails the run.
    """

    def __init__(
        self,
        client: AsyncReverie,
        *,
        source_id: str = "reverie",
        agent: str = "agent-framework",
        project: str | None = None,
    ) -> None:
        super().__init__(source_id)
        self._client, self._agent, self._project = client, agent, project
        scope = f"project/{project}" if project else None
        self._tools = [tool(function) for function in make_tools(client, scope)]

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        """Gives the whole context each time, as instructions are not part of a history."""
        context.extend_tools(self.source_id, self._tools)
        context.extend_instructions(self.source_id, INSTRUCTIONS)
        prompt = "\n".join(
            message.text
            for message in context.input_messages
            if message.role == "user" and message.text
        )
        if not prompt:
            return
        started = await self._client.start_session(
            self._agent,
            project=self._project,
            external_id=context.session_id,
            include_context=False,
        )
        known = await self._client.preflow(started.session, prompt, include_seen=True)
        if known.markdown:
            context.extend_instructions(self.source_id, known.markdown)


class ReverieHistoryProvider(HistoryProvider):
    """The messages of sessions, which come back as they were, and their texts as turns.

    Secrets are replaced before they are stored. Turns that cannot be sent wait for the next
    messages. Without a session, the messages are those of this
    provider alone. `scope`: where messages are kept, if not in the scope of the key. The other
    arguments are those of every `HistoryProvider`.
    """

    def __init__(
        self,
        client: AsyncReverie,
        *,
        source_id: str = "reverie_history",
        agent: str = "agent-framework",
        project: str | None = None,
        scope: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(source_id, **settings)
        self._client, self._agent, self._project = client, agent, project
        self._scope = scope
        self._own_session = uuid4().hex
        self._turns = lru_cache(MAX_SESSIONS)(partial(TurnQueue, client, agent))

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """The messages of a session, in order."""
        return [Message.from_dict(stored.value) async for stored in self._list(session_id)]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Adds the messages that are not stored yet."""
        # An overlap is at most as long as what comes; one more shows that there is more.
        latest: list[Message] = []
        async for stored in self._list(session_id, order="newest"):
            latest.insert(0, Message.from_dict(stored.value))
            if len(latest) > len(messages):
                break
        added = [(uuid4().hex, message) for message in filter_new_messages(latest, messages)]
        if not added:
            return
        await self._client.put_documents(
            self._collection(session_id),
            [{"key": key, "value": message.to_dict()} for key, message in added],
            scope=self._scope,
        )
        turns = [
            {
                "role": message.role if message.role in _ROLES else "assistant",
                "content": message.text,
                "external_id": key,
            }
            for key, message in added
            if message.text.strip()
        ]
        await self._turns(session_id).send(turns, self._project)

    def _list(self, session_id: str | None, **order: Any) -> Any:
        return self._client.list_documents(self._collection(session_id), scope=self._scope, **order)

    def _collection(self, session_id: str | None) -> str:
        return f"{self._agent}/{session_id or self._own_session}"
