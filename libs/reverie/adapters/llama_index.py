"""Memory for agents and chat engines of LlamaIndex: a memory block.

`Memory.from_defaults(memory_blocks=[ReverieMemoryBlock(client=client, project="shop")])`
"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemoryBlock, Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus

from reverie.client import AsyncReverie

_ROLES = {
    MessageRole.USER: "user",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
}
# More than a token has: a block that is still too long is left out as a whole.
_TOKEN_CHARS = 6


class ReverieMemoryBlock(BaseMemoryBlock[str]):
    """Adds context for the user's last message, and hands over messages that leave the queue.

    The conversation of a `Memory` is one session; `session` names another. Messages still in the
    queue are handed over by `finish`. A memory that does not answer fails the call.
    """

    name: str = "reverie"
    description: str | None = "What is remembered from earlier conversations."
    priority: int = 1
    client: AsyncReverie = Field(exclude=True)
    agent: str = "llama-index"
    project: str | None = None
    session: str = Field(default_factory=lambda: uuid4().hex)

    def __init__(self, client: AsyncReverie, **fields: Any) -> None:
        super().__init__(client=client, **fields)

    async def finish(self, memory: Memory) -> None:
        """Ends a conversation: hands over the messages that are still queued, and archives them."""
        queue = await memory.aget_all(status=MessageStatus.ACTIVE)
        await self.aput(queue, session_id=memory.session_id)
        await memory.sql_store.archive_oldest_messages(memory.session_id, n=len(queue))
        await self.client.end_session(await self._open(memory.session_id))

    async def _aget(
        self,
        messages: list[ChatMessage] | None = None,
        session_id: str | None = None,
        **block_kwargs: Any,
    ) -> str:
        """The whole block each time, as an earlier one is not in the history."""
        asked = [one.content for one in messages or () if one.role is MessageRole.USER]
        if not asked or not asked[-1]:
            return ""
        session = await self._open(session_id)
        return (await self.client.preflow(session, asked[-1], include_seen=True)).markdown

    async def _aput(self, messages: list[ChatMessage]) -> None:
        turns = [
            {"role": _ROLES.get(one.role, "assistant"), "content": one.content}
            for one in messages
            if one.content
        ]
        if turns:
            ids = (one.additional_kwargs.get("session_id") for one in messages)
            session = await self._open(next(ids, None))
            await self.client.append_turns(session, turns)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Leaves out the last memories, which matter least."""
        lines = content.splitlines() if content else []
        spare = tokens_to_truncate * _TOKEN_CHARS
        for place in reversed(range(len(lines))):
            if spare > 0 and lines[place].startswith("- "):
                spare -= len(lines.pop(place))
        return "\n".join(lines) if any(line.startswith("- ") for line in lines) else None

    async def _open(self, session_id: str | None) -> UUID:
        started = await self.client.start_session(
            self.agent,
            project=self.project,
            external_id=session_id or self.session,
            include_context=False,
        )
        return started.session
