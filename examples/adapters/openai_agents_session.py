"""An agent of OpenAI's Agents SDK that goes on with a conversation; its model is scripted.

REVERIE_URL and REVERIE_API_KEY say which Reverie. With a real model, only the client changes.
"""

from __future__ import annotations

import asyncio
import os

from agents import Agent, OpenAIResponsesModel, Runner
from agents.tracing import set_tracing_disabled
from openai import AsyncOpenAI

from reverie.adapters.openai_agents import ReverieSession
from reverie.client import AsyncReverie
from reverie.testing.chat_server import ChatAnswer, ChatRequest, chat_server


def answer(asked: ChatRequest) -> ChatAnswer:
    """A model that knows what was said before in the conversation."""
    if not asked.last.startswith("How"):
        return ChatAnswer("I noted it.")
    return ChatAnswer("In cents." if "in cents" in asked.body_text else "I do not know.")


async def main() -> None:
    """Two runs of one conversation; the second could be in another process."""
    url, key = os.environ["REVERIE_URL"], os.environ["REVERIE_API_KEY"]
    set_tracing_disabled(True)
    async with (
        chat_server(answer) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as openai,
        AsyncReverie(url, key) as reverie,
    ):
        clerk = Agent("clerk", model=OpenAIResponsesModel("scripted", openai))
        for said in ("We keep prices in cents.", "How are prices kept?"):
            session = ReverieSession("chat-1", reverie, project="bookshop")
            run = Runner.run_streamed(clerk, said, session=session)
            async for _ in run.stream_events():
                pass
            print(run.final_output)


if __name__ == "__main__":
    asyncio.run(main())
