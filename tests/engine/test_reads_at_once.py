"""Tools that only read run at once, and not all of them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR
from reverie_services.engine.turns.capabilities import PARALLEL_READS, TurnTools


async def test_at_most_four_reads_run_at_once() -> None:
    running = most = 0
    full = asyncio.Event()

    async def look(place: int) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == PARALLEL_READS:
            full.set()
        await full.wait()
        running -= 1
        return f"seen {place}"

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("Done.")])
        return ModelResponse([ToolCallPart("look", {"place": number}) for number in range(10)])

    state: Any = SimpleNamespace(
        calls=[], earlier_calls=[], emitter=SimpleNamespace(redactor=CREDENTIAL_REDACTOR)
    )
    agent = Agent(FunctionModel(answer), tools=[look], capabilities=[TurnTools(frozenset())])
    async with asyncio.timeout(60):
        result = await agent.run("Look.", deps=state)
    assert result.output == "Done."
    assert (PARALLEL_READS, most) == (4, 4)
    assert len(state.calls) == 10
