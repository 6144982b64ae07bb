"""Agents of Microsoft Agent Framework that remember between conversations; scripted models.

REVERIE_URL and REVERIE_API_KEY say which Reverie. With a real model, nothing else changes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)

from reverie.adapters.agent_framework import ReverieContextProvider, ReverieHistoryProvider
from reverie.client import AsyncReverie

DECISION = "Prices are kept in cents, because floats lost money."


class ScriptedClient(FunctionInvocationLayer, BaseChatClient):
    """A model that remembers a decision, and answers by what it was told before."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_: Any
    ) -> Awaitable[ChatResponse]:
        return self._answer(messages[-1], str(options.get("instructions")))

    async def _answer(self, last: Message, told: str) -> ChatResponse:
        answer: Content | str = "In cents." if "in cents" in told else "I do not know."
        if "remember that" in last.text:
            what = {"content": DECISION, "kind": "decision"}
            answer = Content.from_function_call("call-1", "remember", arguments=what)
        elif last.role == "tool":
            answer = "I will remember that."
        return ChatResponse(messages=[Message("assistant", [answer])])


async def main() -> None:
    """Two conversations: the second knows what the first decided. A history is kept of each."""
    url, key = os.environ["REVERIE_URL"], os.environ["REVERIE_API_KEY"]
    async with AsyncReverie(url, key) as client:
        history = ReverieHistoryProvider(client, project="bookshop")
        memory = ReverieContextProvider(client, project="bookshop")
        agent = Agent(ScriptedClient(), context_providers=[history, memory])
        said = "We keep prices in cents: remember that."
        print((await agent.run(said, session=agent.create_session(session_id="monday"))).text)
        asked = "How are prices kept?"
        print((await agent.run(asked, session=agent.create_session(session_id="friday"))).text)
        print(f"{len(await history.get_messages('monday'))} messages of monday")


if __name__ == "__main__":
    asyncio.run(main())
