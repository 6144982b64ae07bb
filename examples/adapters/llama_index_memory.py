"""A chat engine of LlamaIndex that knows what was decided before; its model is scripted.

REVERIE_URL and REVERIE_API_KEY say which Reverie. With a real model, nothing else changes.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.memory import Memory

from reverie.adapters.llama_index import ReverieMemoryBlock
from reverie.client import AsyncReverie


class ScriptedModel(CustomLLM):
    """A model that answers by what it was told before it was asked."""

    @property
    def metadata(self) -> LLMMetadata:
        """No limits of its own."""
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        """One answer."""
        return CompletionResponse(text="In cents." if "cents" in prompt else "I do not know.")

    def stream_complete(
        self, prompt: str, formatted: bool = False, **_: Any
    ) -> CompletionResponseGen:
        """The same, in one piece."""
        yield self.complete(prompt)


async def main() -> None:
    """A conversation that knows a decision, and is handed over at its end."""
    url, key = os.environ["REVERIE_URL"], os.environ["REVERIE_API_KEY"]
    async with AsyncReverie(url, key) as client:
        decision = "Prices are kept in cents, because floats lost money."
        await client.remember(decision, kind="decision", scope="project/bookshop")
        block = ReverieMemoryBlock(client, project="bookshop")
        memory = Memory.from_defaults(session_id="prices", memory_blocks=[block])
        engine = SimpleChatEngine.from_defaults(llm=ScriptedModel(), memory=memory)
        print((await engine.achat("How are prices kept?")).response)
        await block.finish(memory)
        async for session in client.list_sessions(agent="llama-index"):
            print(f"{session.turns} turns are handed over.")


if __name__ == "__main__":
    asyncio.run(main())
