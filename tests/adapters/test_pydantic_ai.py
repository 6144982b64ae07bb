"""The capability and the toolset of Pydantic AI, with its own test models."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from reverie.adapters.pydantic_ai import ReverieMemory, ReverieToolset
from reverie.client import AsyncReverie, Unavailable
from tests.adapters.examples import run_example
from tests.support.stack import Stack


async def test_what_is_known_comes_before_a_run_and_the_conversation_after_it(
    stack: Stack,
) -> None:
    told: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told.append(info.instructions or "")
        return ModelResponse([TextPart(f"Answer {len(told)}.")])

    async with AsyncReverie(stack.url, stack.key) as client:
        await client.remember("The lamp is lit at dusk.", kind="convention", scope="project/tower")
        agent = Agent(FunctionModel(answer), capabilities=[ReverieMemory(client, project="tower")])
        first = await agent.run("When is the lamp lit?", conversation_id="night")
        await agent.run("And put out?", message_history=first.all_messages())
        (session,) = [one async for one in client.list_sessions(agent="pydantic-ai")]
        turns = [(one.role, one.content) async for one in client.list_turns(session.id)]
    assert "The lamp is lit at dusk." in told[0]
    assert turns == [
        ("user", "When is the lamp lit?"),
        ("assistant", "Answer 1."),
        ("user", "And put out?"),
        ("assistant", "Answer 2."),
    ]


async def test_runs_at_the_same_time_do_not_mix(stack: Stack) -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart("Noted.")])

    async with AsyncReverie(stack.url, stack.key) as client:
        agent = Agent(FunctionModel(answer), capabilities=[ReverieMemory(client)])
        await asyncio.gather(
            *(agent.run(f"Boat {n} leaves.", conversation_id=f"boat-{n}") for n in range(3))
        )
        said = [
            [one.content async for one in client.list_turns(session.id)]
            async for session in client.list_sessions(agent="pydantic-ai")
        ]
    assert sorted(said) == [[f"Boat {n} leaves.", "Noted."] for n in range(3)]


async def test_a_model_uses_the_tools(stack: Stack) -> None:
    async with AsyncReverie(stack.url, stack.key) as client:
        agent = Agent(TestModel(), toolsets=[ReverieToolset(client, scope="project/tower")])
        result = await agent.run("Use what you have.")
        kept = [one async for one in client.list_memories(scope="project/tower")]
    assert "recall" in result.output
    assert [str(one.id) in result.output for one in kept] == [True]


async def test_a_memory_that_does_not_answer_is_no_silent_loss() -> None:
    async with AsyncReverie("http://127.0.0.1:9", "rv_none", max_attempts=1) as client:
        agent = Agent(TestModel(), capabilities=[ReverieMemory(client)])
        with pytest.raises(Unavailable):
            await agent.run("Are you there?")


async def test_the_example_remembers_between_conversations(stack: Stack) -> None:
    assert await run_example(stack, "adapters/pydantic_ai_memory") == [
        "I will remember that.",
        "In cents.",
    ]
