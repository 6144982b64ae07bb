"""The memory block of LlamaIndex, in its own `Memory`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from reverie.client import AsyncReverie, Unavailable
from tests.adapters.examples import run_example
from tests.support.stack import Stack

pytest.importorskip("llama_index.core", reason="`make adapters` installs it")

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from sqlalchemy.ext.asyncio import create_async_engine

from reverie.adapters.llama_index import ReverieMemoryBlock

MakeMemory = Callable[..., Any]


@pytest.fixture
async def make_memory() -> AsyncIterator[MakeMemory]:
    """Makes the framework's own memory, of one conversation, around a block."""
    engine = create_async_engine("sqlite+aiosqlite:///:memory:")

    def make(block: ReverieMemoryBlock, **settings: Any) -> Any:
        return Memory.from_defaults(
            session_id="night",
            memory_blocks=[block],
            tokenizer_fn=str.split,
            async_engine=engine,
            **settings,
        )

    yield make
    await engine.dispose()


async def _turns(client: AsyncReverie) -> list[tuple[str, str]]:
    (session,) = [one async for one in client.list_sessions(agent="llama-index")]
    turns = [one async for one in client.list_turns(session.id)]
    # How a tool's call ended stands on a line before what it gave.
    return [(one.role, one.content.splitlines()[-1]) for one in turns]


async def test_what_is_known_comes_with_every_message(
    stack: Stack, make_memory: MakeMemory
) -> None:
    async with AsyncReverie(stack.url, stack.key) as client:
        await client.remember("The lamp is lit at dusk.", kind="convention", scope="project/tower")
        memory = make_memory(ReverieMemoryBlock(client, project="tower"))
        given = [await memory.aget()]
        for _ in range(2):
            await memory.aput(ChatMessage(role="user", content="When is the lamp lit?"))
            given.append(await memory.aget())
    assert given[0] == []
    assert [messages[0].role.value for messages in given[1:]] == ["system", "system"]
    assert ["The lamp is lit at dusk." in str(one[0].content) for one in given[1:]] == [True] * 2


async def test_a_conversation_is_handed_over_once_and_in_order(
    stack: Stack, make_memory: MakeMemory
) -> None:
    said = [
        ("user", "The harbour opens at six."),
        ("assistant", "Noted."),
        ("user", "The gate is closed at nine."),
        ("assistant", "Noted."),
        ("user", "Who has the keys?"),
        ("tool", "Nobody was found."),
        ("assistant", "Nobody."),
    ]
    async with AsyncReverie(stack.url, stack.key) as client:
        block = ReverieMemoryBlock(client)
        memory = make_memory(block, token_limit=20, token_flush_size=4)
        for role, content in said:
            await memory.aput(ChatMessage(role=role, content=content))
        early = await _turns(client)
        await block.finish(memory)
        await block.finish(memory)
        turns = await _turns(client)
    assert 0 < len(early) < len(said)
    assert turns == said


async def test_too_long_a_block_loses_its_last_memories(stack: Stack) -> None:
    async with AsyncReverie(stack.url, stack.key) as client:
        for n in range(4):
            content = f"Boat {n} leaves the harbour at {n + 6} o'clock, in the morning."
            await client.remember(content, kind="convention", scope="project/pier")
        block = ReverieMemoryBlock(client, project="pier")
        question = [ChatMessage(role="user", content="When do the boats leave the harbour?")]
        whole = await block.aget(question)
        shorter = await block.atruncate(whole, 10)
        nothing = await block.atruncate(whole, 10_000)
    assert shorter is not None
    kept, lost = shorter.splitlines(), whole.splitlines()
    assert len(lost) - len(kept) == 1
    assert (kept[0], kept[-1]) == ("<reverie-memory>", "</reverie-memory>")
    assert nothing is None
    assert await block.atruncate("", 10) is None


async def test_a_memory_that_does_not_answer_is_no_silent_loss(make_memory: MakeMemory) -> None:
    async with AsyncReverie("http://127.0.0.1:9", "rv_none", max_attempts=1) as client:
        memory = make_memory(ReverieMemoryBlock(client))
        await memory.aput(ChatMessage(role="user", content="Are you there?"))
        with pytest.raises(Unavailable):
            await memory.aget()


async def test_the_example_knows_what_was_decided(stack: Stack) -> None:
    assert await run_example(stack, "adapters/llama_index_memory") == [
        "In cents.",
        "2 turns are handed over.",
    ]
