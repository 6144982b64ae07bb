"""Memory for agents of Microsoft Agent Framework: a context provider, and a history.

`Agent(chat, context_providers=[ReverieContextProvider(client), ReverieHistoryProvider(client)])`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from agent_framework import ContextProvider, HistoryProvider, Message, tool

# What a conversation that is given as a whole adds to its history: the framework's own rule.
from agent_framework._sessions import filter_new_messages

from reverie.client import AsyncReverie
from reverie.client.parameters import RecallFields, RememberFields

INSTRUCTIONS = (
    "You have a memory that outlives this conversation. Ask it by `recall` before you decide what"
    " was decided before; keep by `remember` what later conversations must know."
)
_ROLES = {"user", "assistant", "tool", "system"}
_BATCH = 1000


class ReverieContextProvider(ContextProvider):
    """What is known before each run, and the tools `recall` and `remember`.

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
        self._tools = _make_tools(client, f"project/{project}" if project else None)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        """Gives the whole context each time, as instructions are not part of a history."""
        context.extend_tools(self.source_id, self._tools)
        context.extend_instructions(self.source_id, INSTRUCTIONS)
        prompt = "\n".join(
            one.text for one in context.input_messages if one.role == "user" and one.text
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

    Secrets are replaced before they are stored. Without a session, the messages are those of this
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

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """The messages of a session, in order."""
        stored = self._client.list_documents(self._collection(session_id), scope=self._scope)
        return [Message.from_dict(one.value) async for one in stored]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Adds the messages that are not there yet."""
        added = filter_new_messages(await self.get_messages(session_id), messages)
        for start in range(0, len(added), _BATCH):
            await self._append(session_id, added[start : start + _BATCH])

    async def _append(self, session_id: str | None, messages: Sequence[Message]) -> None:
        keyed = [(uuid4().hex, message) for message in messages]
        await self._client.put_documents(
            self._collection(session_id),
            [{"key": key, "value": message.to_dict()} for key, message in keyed],
            scope=self._scope,
        )
        turns = [
            {
                "role": one.role if one.role in _ROLES else "assistant",
                "content": one.text,
                "external_id": key,
            }
            for key, one in keyed
            if one.text.strip()
        ]
        if turns:
            started = await self._client.start_session(
                self._agent, project=self._project, external_id=session_id, include_context=False
            )
            await self._client.append_turns(started.session, turns)

    def _collection(self, session_id: str | None) -> str:
        return f"{self._agent}/{session_id or self._own_session}"


def _make_tools(client: AsyncReverie, scope: str | None) -> list[Any]:
    """The tools `recall` and `remember`. `scope`: where memories are read and written."""

    async def recall(query: str) -> str:
        """Finds what is remembered about a question in plain words."""
        scopes: RecallFields = {"scopes": [scope]} if scope else {}
        found = await client.recall_as_text(query, **scopes)
        return found or "Nothing is remembered about this."

    async def remember(content: str, kind: str = "lesson") -> str:
        """Keeps one statement, understood by itself, for later conversations.

        Kinds: decision, convention, lesson, preference, bug, or another kind of memory.
        """
        place: RememberFields = {"scope": scope} if scope else {}
        place["kind"] = kind
        made = await client.remember(content, **place)
        return f"{made.status}: {made.id}"

    return [tool(recall), tool(remember)]
