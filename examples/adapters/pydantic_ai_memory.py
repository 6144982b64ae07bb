"""An agent of Pydantic AI that remembers between conversations; its model is scripted.

REVERIE_URL and REVERIE_API_KEY say which Reverie. With a real model, nothing else changes.
"""

from __future__ import annotations

import asyncio
import os

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from reverie.adapters.pydantic_ai import ReverieMemory
from reverie.client import AsyncReverie


def write_down(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A model that remembers a decision, and then says so."""
    if len(messages) == 1:
        decision = "Prices are kept in cents, because floats lost money."
        return ModelResponse([ToolCallPart("remember", {"content": decision, "kind": "decision"})])
    return ModelResponse([TextPart("I will remember that.")])


def look(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A model that answers by what it was told before it was asked."""
    known = "cents" in (info.instructions or "")
    return ModelResponse([TextPart("In cents." if known else "I do not know.")])


async def main() -> None:
    """Two conversations: the second knows what the first decided."""
    url, key = os.environ["REVERIE_URL"], os.environ["REVERIE_API_KEY"]
    async with AsyncReverie(url, key) as client:
        memory = ReverieMemory(client, project="bookshop")
        first = Agent(FunctionModel(write_down), capabilities=[memory])
        print((await first.run("We keep prices in cents: remember that.")).output)
        second = Agent(FunctionModel(look), capabilities=[memory])
        print((await second.run("How are prices kept?")).output)


if __name__ == "__main__":
    asyncio.run(main())
