"""An agent of Google's ADK that remembers between sessions; its model is scripted.

REVERIE_URL and REVERIE_API_KEY say which Reverie. With a real model, nothing else changes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import preload_memory
from google.genai.types import Content, Part

from reverie.adapters.google_adk import ReverieMemoryService
from reverie.client import AsyncReverie


class ScriptedModel(BaseLlm):
    """A model that answers by what it was told before it was asked."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Knows the currency if memory tells it."""
        told = [str(one) for one in llm_request.contents if "PAST_CONVERSATIONS" in str(one)]
        text = "In cents." if "cents" in str(told) else "Nothing was said about it before."
        yield LlmResponse(content=Content(role="model", parts=[Part(text=text)]))


async def main() -> None:
    """Two sessions: the second knows what was said in the first; another user's does not."""
    url, key = os.environ["REVERIE_URL"], os.environ["REVERIE_API_KEY"]
    agent = LlmAgent(name="clerk", model=ScriptedModel(), tools=[preload_memory])
    sessions = InMemorySessionService()
    async with AsyncReverie(url, key) as client:
        memory = ReverieMemoryService(client)
        runner = Runner(
            app_name="shop", agent=agent, session_service=sessions, memory_service=memory
        )

        async def ask(user: str, text: str) -> None:
            session = await sessions.create_session(app_name="shop", user_id=user)
            said = Content(role="user", parts=[Part(text=text)])
            async for event in runner.run_async(
                user_id=user, session_id=session.id, new_message=said
            ):
                if event.content and event.content.parts:
                    print(f"{user}: {event.content.parts[0].text}")
            done = await sessions.get_session(app_name="shop", user_id=user, session_id=session.id)
            if done:
                await memory.add_session_to_memory(done)

        await ask("ada", "We keep prices in cents, because floats lost money.")
        await ask("ada", "How are prices kept?")
        await ask("bob", "How are prices kept?")


if __name__ == "__main__":
    asyncio.run(main())
