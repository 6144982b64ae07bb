"""The providers of Microsoft Agent Framework, with its own agents and a scripted chat client."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from reverie.client import AsyncReverie, Unavailable
from tests.adapters.examples import run_example
from tests.support.stack import Stack

pytest.importorskip("agent_framework", reason="`make adapters` installs it")

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FileHistoryProvider,
    FunctionInvocationLayer,
    Message,
)

from reverie.adapters.agent_framework import ReverieContextProvider, ReverieHistoryProvider


class _Chat(FunctionInvocationLayer, BaseChatClient):
    """Gives the answers in turn, and keeps what it was asked."""

    def __init__(self, *answers: Content | str) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[list[str]] = []
        self.told: list[str] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_: Any
    ) -> Awaitable[ChatResponse]:
        self.asked.append([one.text for one in messages])
        self.told.append(str(options.get("instructions")))
        return self._answer()

    async def _answer(self) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", [self.answers.pop(0)])])


async def test_what_is_known_comes_before_every_run(stack: Stack) -> None:
    chat = _Chat("At dusk.", "At dawn.")
    async with AsyncReverie(stack.url, stack.key) as client:
        await client.remember("The lamp is lit at dusk.", kind="convention", scope="project/tower")
        agent = Agent(chat, context_providers=[ReverieContextProvider(client, project="tower")])
        session = agent.create_session(session_id="night")
        await agent.run("When is the lamp lit?", session=session)
        await agent.run("When is the lamp lit, and put out?", session=session)
    assert ["The lamp is lit at dusk." in told for told in chat.told] == [True, True]


async def test_a_conversation_goes_on_after_a_restart(stack: Stack) -> None:
    chats = _Chat("Good day, Ada."), _Chat("You are Ada.")
    async with AsyncReverie(stack.url, stack.key) as client:
        for chat, said in zip(chats, ("I am Ada.", "Who am I?"), strict=True):
            agent = Agent(chat, context_providers=[ReverieHistoryProvider(client)])
            await agent.run(said, session=agent.create_session(session_id="night"))
        (talk,) = [one async for one in client.list_sessions(agent="agent-framework")]
        turns = [(one.role, one.content) async for one in client.list_turns(talk.id)]
    assert chats[1].asked == [["I am Ada.", "Good day, Ada.", "Who am I?"]]
    assert turns == [
        ("user", "I am Ada."),
        ("assistant", "Good day, Ada."),
        ("user", "Who am I?"),
        ("assistant", "You are Ada."),
    ]


async def test_a_model_uses_the_tools(stack: Stack) -> None:
    what = {"content": "The gate is closed at nine.", "kind": "decision"}
    chat = _Chat(
        Content.from_function_call("1", "remember", arguments=what),
        Content.from_function_call("2", "recall", arguments={"query": "When is the gate closed?"}),
        "At nine.",
    )
    async with AsyncReverie(stack.url, stack.key) as client:
        history = ReverieHistoryProvider(client)
        memory = ReverieContextProvider(client, project="tower")
        agent = Agent(chat, context_providers=[history, memory])
        await agent.run("Close the gate at nine.", session=agent.create_session(session_id="gate"))
        kept = [one async for one in client.list_memories(scope="project/tower")]
        messages = await history.get_messages("gate")
    assert [(one.content, one.kind) for one in kept] == [(what["content"], "decision")]
    contents = [content for one in messages for content in one.contents]
    results = [str(one.result) for one in contents if one.type == "function_result"]
    assert results[0] == f"created: {kept[0].id}"
    assert what["content"] in results[1]


_MESSAGES = [
    Message("user", ["Look at this.", Content.from_uri("data:image/png;base64,AAAA")]),
    Message(
        "assistant",
        [
            Content.from_text_reasoning(text="A picture."),
            Content.from_function_call("1", "look", arguments={"at": ["x", 1, None, 0.5, True]}),
        ],
        message_id="m-2",
        author_name="Ada",
        additional_properties={"mood": {"calm": True}},
    ),
    Message("tool", [Content.from_function_result("1", result="ä\u2028 🙂 \n\t")]),
    Message("user", ["Yes."]),
    Message("user", ["Yes."]),
    Message("assistant", []),
]


@pytest.mark.filterwarnings("ignore:.*FileHistoryProvider is experimental")
@pytest.mark.parametrize(
    "saves",
    [
        [_MESSAGES],
        [_MESSAGES[:2], _MESSAGES[2:]],
        [_MESSAGES[:3], _MESSAGES],
        [_MESSAGES[:4], _MESSAGES[2:]],
        [_MESSAGES[3:4], _MESSAGES[3:4]],
        [[], _MESSAGES[:1], []],
    ],
    ids=["at once", "in parts", "as a whole again", "overlapping", "repeated", "nothing"],
)
async def test_a_history_is_what_the_framework_s_own_files_give(
    stack: Stack, tmp_path: Path, saves: list[list[Message]]
) -> None:
    files = FileHistoryProvider(tmp_path)
    async with AsyncReverie(stack.url, stack.key) as client:
        history = ReverieHistoryProvider(client)
        for messages in saves:
            await history.save_messages("night", messages)
            await files.save_messages("night", messages)
        found = [one.to_dict() for one in await history.get_messages("night")]
        other = await history.get_messages("day")
    assert found == [one.to_dict() for one in await files.get_messages("night")]
    assert other == []


async def test_without_a_session_providers_do_not_read_each_other_s_messages(stack: Stack) -> None:
    async with AsyncReverie(stack.url, stack.key) as client:
        first, second = ReverieHistoryProvider(client), ReverieHistoryProvider(client)
        await first.save_messages(None, [Message("user", ["Ada's own."])])
        assert [one.text for one in await first.get_messages(None)] == ["Ada's own."]
        assert await second.get_messages(None) == []


async def test_a_memory_that_does_not_answer_is_no_silent_loss() -> None:
    async with AsyncReverie("http://127.0.0.1:9", "rv_none", max_attempts=1) as client:
        for provider in ReverieContextProvider(client), ReverieHistoryProvider(client):
            agent = Agent(_Chat("Yes."), context_providers=[provider])
            with pytest.raises(Unavailable):
                await agent.run("Are you there?")


async def test_the_example_remembers_between_conversations(stack: Stack) -> None:
    assert await run_example(stack, "adapters/agent_framework_memory") == [
        "I will remember that.",
        "In cents.",
        "4 messages of monday",
    ]
