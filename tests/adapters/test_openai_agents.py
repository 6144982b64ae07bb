"""Sessions of OpenAI's Agents SDK, against its own on SQLite, and in runs of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.client import AsyncReverie, Unavailable
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse, chat_server
from tests.adapters.examples import run_example
from tests.support.stack import Stack

if TYPE_CHECKING:
    from agents import Agent

    from reverie.adapters.openai_agents import ReverieSession

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
ITEMS = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system"]), "content": TEXTS}
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("function_call"),
            "call_id": st.sampled_from(["1", "2"]),
            "name": TEXTS,
            "arguments": TEXTS,
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("function_call_output"),
            "call_id": st.sampled_from(["1", "2", "3"]),
            "output": st.one_of(TEXTS, st.lists(st.fixed_dictionaries({"text": TEXTS}))),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("reasoning"),
            "summary": st.lists(st.one_of(st.none(), st.floats(-1, 1), TEXTS), max_size=3),
        }
    ),
)
STEPS = st.one_of(
    st.tuples(st.just("add_items"), st.lists(ITEMS, max_size=4)),
    st.tuples(st.just("get_items"), st.one_of(st.none(), st.integers(-1, 5))),
    st.tuples(st.just("pop_item")),
    st.tuples(st.just("clear_session")),
)

# The threads of the stack use `random` while Hypothesis draws.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")


def make_session(id: str, client: AsyncReverie, **options: Any) -> ReverieSession:
    """A session. Imported here: the SDK takes seconds of every process that collects tests."""
    from reverie.adapters.openai_agents import ReverieSession

    return ReverieSession(id, client, **options)


@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(STEPS, min_size=4, max_size=12), st.one_of(st.none(), st.integers(0, 3)))
async def test_items_are_those_of_a_session_on_sqlite(
    stack: Stack, steps: list[tuple[Any, ...]], limit: int | None
) -> None:
    from agents import SQLiteSession
    from agents.memory import SessionSettings

    name = f"random-{uuid4()}"
    reference = SQLiteSession(name, session_settings=SessionSettings(limit=limit))
    try:
        async with AsyncReverie(stack.url, stack.key) as client:
            for method, *arguments in [*steps, ("get_items", 100), ("get_items",)]:
                # A session object of its own each time, as after a restart.
                session = make_session(name, client, session_settings=SessionSettings(limit=limit))
                got = await getattr(session, method)(*arguments)
                assert got == await getattr(reference, method)(*arguments), method
    finally:
        reference.close()


async def test_what_was_said_and_done_becomes_turns_once_and_stays(stack: Stack) -> None:
    async with AsyncReverie(stack.url, stack.key) as client:
        session = make_session("night", client, project="tower")
        call = {"type": "function_call", "call_id": "7", "name": "look", "arguments": '{"at": 1}'}
        asked = [
            {"role": "user", "content": [{"type": "input_text", "text": "Is the lamp lit?"}]},
            {"type": "reasoning", "summary": []},
            call,
        ]
        await session.add_items(asked)
        # The result comes after a restart.
        session = make_session("night", client, project="tower")
        told = {"role": "assistant", "content": [{"type": "output_text", "text": "It is."}]}
        output = "bright " * 10_000
        done = {"type": "function_call_output", "call_id": "7", "output": output}
        await session.add_items([done, told])
        assert await session.get_items() == [*asked, done, told]
        assert await session.pop_item() == told
        await session.clear_session()
        assert await session.get_items() == []
        (kept,) = [one async for one in client.list_sessions(project="tower")]
        turns = [one async for one in client.list_turns(kept.id)]
    assert [(one.role, one.tool) for one in turns] == [
        ("user", None), ("tool", "look"), ("assistant", None),
    ]  # fmt: skip
    assert (turns[0].content, turns[2].content) == ("Is the lamp lit?", "It is.")
    assert turns[1].content.startswith('look: ({"at": 1}) [ok]\n')
    assert len(turns[1].content) < 2_000


async def test_two_programs_take_each_item_once(stack: Stack) -> None:
    async with AsyncReverie(stack.url, stack.key) as client:
        sessions = [make_session("shared", client) for _ in range(2)]
        await sessions[0].add_items([{"role": "user", "content": str(n)} for n in range(6)])
        taken = await asyncio.gather(*(sessions[n % 2].pop_item() for n in range(8)))
    assert sorted(one["content"] for one in taken if one) == [str(n) for n in range(6)]


def _clerk(asked: ChatRequest) -> ChatAnswer:
    if asked.last.startswith("Keep"):
        return ChatAnswer(calls=(ToolUse("set_unit", {"unit": "cents"}),))
    if asked.is_after_tool:
        return ChatAnswer("Decided.")
    return ChatAnswer("In cents." if "cents" in asked.body_text else "I do not know.")


@asynccontextmanager
async def _agent() -> AsyncIterator[Agent[Any]]:
    from agents import Agent, ModelSettings, OpenAIResponsesModel, function_tool
    from agents.tracing import set_tracing_disabled
    from openai import AsyncOpenAI

    @function_tool  # type: ignore[untyped-decorator]
    def set_unit(unit: str) -> str:
        """Sets the unit of prices."""
        return f"Prices are kept in {unit}."

    set_tracing_disabled(True)
    async with (
        chat_server(_clerk) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as openai,
    ):
        model = OpenAIResponsesModel("scripted", openai)
        yield Agent("clerk", model=model, tools=[set_unit], model_settings=ModelSettings())


async def _run(agent: Agent[Any], said: str, session: Any) -> str:
    from agents import Runner

    result = Runner.run_streamed(agent, said, session=session)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


async def test_a_run_goes_on_with_what_an_earlier_one_decided(stack: Stack) -> None:
    async with AsyncReverie(stack.url, stack.key) as client, _agent() as agent:
        first = make_session("prices", client, project="shop")
        assert await _run(agent, "Keep prices in cents.", first) == "Decided."
        again = make_session("prices", client, project="shop")
        assert await _run(agent, "How are prices kept?", again) == "In cents."
        other = make_session("another", client, project="shop")
        assert await _run(agent, "How are prices kept?", other) == "I do not know."
        kept = {one.external_id: one async for one in client.list_sessions(project="shop")}
        turns = [one async for one in client.list_turns(kept["prices"].id)]
        (backlog,) = [one async for one in client.list_undigested(scope="project/shop")]
    assert [(one.role, one.content.splitlines()[0]) for one in turns] == [
        ("user", "Keep prices in cents."),
        ("tool", 'set_unit: ({"unit": "cents"}) [ok]'),
        ("assistant", "Decided."),
        ("user", "How are prices kept?"),
        ("assistant", "In cents."),
    ]
    assert backlog.turns == 7


async def test_the_example_goes_on_with_a_conversation(stack: Stack) -> None:
    assert await run_example(stack, "adapters/openai_agents_session") == [
        "I noted it.",
        "In cents.",
    ]


async def test_items_are_added_once_where_turns_cannot_be_sent(
    alone: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncReverie(alone.url, alone.key) as reverie:
        session = make_session("lost", reverie)

        async def fail(*_: Any) -> Any:
            raise Unavailable("the gateway", "later")

        with monkeypatch.context() as broken:
            broken.setattr(reverie, "append_turns", fail)
            await session.add_items([{"role": "user", "content": "We moor at the north side."}])
        await session.add_items([{"role": "assistant", "content": "Noted."}])
        assert len(await session.get_items()) == 2
        [started] = [each async for each in reverie.list_sessions(agent="openai-agents")]
        turns = [turn.content async for turn in reverie.list_turns(started.id)]
    assert turns == ["We moor at the north side.", "Noted."]
