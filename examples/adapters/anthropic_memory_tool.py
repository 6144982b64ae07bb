"""Claude with its memory tool on Reverie, in two conversations; the model is scripted.

REVERIE_URL and REVERIE_API_KEY say which Reverie. With a real model, only the client changes.
"""

from __future__ import annotations

import asyncio
import os

from anthropic import AsyncAnthropic

from reverie.adapters.anthropic_memory import ReverieMemoryTool
from reverie.client import AsyncReverie
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse, chat_server

FILE = "/memories/prices.md"


def answer(asked: ChatRequest) -> ChatAnswer:
    """A model that writes what it is told to a file, and looks there before it answers."""
    if asked.is_after_tool:
        known = "cents" in asked.last and "line numbers" in asked.last
        return ChatAnswer("In cents." if known else "I wrote it down.")
    if asked.last.startswith("How"):
        return ChatAnswer(calls=(ToolUse("memory", {"command": "view", "path": FILE}),))
    written = {"command": "create", "path": FILE, "file_text": "Prices are kept in cents.\n"}
    return ChatAnswer(calls=(ToolUse("memory", written),))


async def main() -> None:
    """Two conversations: the second knows what the first wrote."""
    url, key = os.environ["REVERIE_URL"], os.environ["REVERIE_API_KEY"]
    async with (
        chat_server(answer) as server,
        AsyncAnthropic(base_url=server.url, api_key="none") as claude,
        AsyncReverie(url, key) as reverie,
    ):
        for said in ("We keep prices in cents.", "How are prices kept?"):
            runner = claude.beta.messages.tool_runner(
                model="claude-sonnet-5-5",
                max_tokens=1000,
                messages=[{"role": "user", "content": said}],
                tools=[ReverieMemoryTool(reverie, scope="project/bookshop")],
                stream=True,
            )
            async for stream in runner:
                message = await stream.get_final_message()
            print("".join(block.text for block in message.content if block.type == "text"))


if __name__ == "__main__":
    asyncio.run(main())
