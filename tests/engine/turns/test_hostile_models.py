"""Models that send garbage, too much, or without end: each turn ends, and its watchers are told."""

from __future__ import annotations

import json
from itertools import chain, repeat

import pytest

from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse
from tests.engine.conftest import Engine


def _chunk(**delta: str) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}
    return f"data: {json.dumps({'id': 'x', 'model': 'stub', 'choices': [choice]})}"


SECRET_WORDS = "the words of the model"


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["\x00\x01\x02 nothing like a stream"],
        [_chunk(content="Hello. "), f"data: {json.dumps({'choices': SECRET_WORDS})}"],
        [_chunk(content="Hello. "), f"data: {json.dumps([SECRET_WORDS])}"],
        [_chunk(content="Hello. "), 'data: {"choices": [{"delta": {"content": 7}}]}'],
        ["data: null", "data: [DONE]"],
    ],
)
async def test_garbage_ends_the_turn_without_a_word_of_it_in_the_reason(
    engine: Engine, lines: list[str]
) -> None:
    engine.play(lambda _: ChatAnswer(raw=lines))
    group = await engine.group("beck")
    posted = await engine.post(group, "Hello.")
    seen = await engine.watch(group, posted["after"])
    [stop] = [event["data"] for event in seen if event["type"] == "stop"]
    assert SECRET_WORDS not in str(stop)
    assert (await engine.ended(group, posted))["beck"]["status"] in {"done", "failed"}


async def test_a_model_that_never_stops_is_cut_off(engine: Engine) -> None:
    nothing = ": " + "x" * 1_000_000
    engine.play(lambda _: ChatAnswer(raw=chain([_chunk(content="So. ")], repeat(nothing))))
    group = await engine.group("beck")
    posted = await engine.post(group, "Hello.")
    seen = await engine.watch(group, posted["after"])
    assert seen[-1]["data"] == {"status": "failed", "content": "So. "}


async def test_an_answer_in_one_huge_piece_reaches_its_watchers(engine: Engine) -> None:
    text = "w" * 1_500_000
    engine.play(lambda _: ChatAnswer(text))
    group = await engine.group("beck")
    posted = await engine.post(group, "Hello.")
    seen = await engine.watch(group, posted["after"])
    said = "".join(event["data"]["text"] for event in seen if event["type"] == "text_delta")
    assert said == text
    assert await engine.answers(group) == [text]
    assert (seen[-1]["data"]["status"], seen[-1]["data"]["cut"]) == ("done", ["content"])


async def test_huge_arguments_are_cut_in_events(engine: Engine) -> None:
    huge = ToolUse("write_file", {"path": "big.txt", "content": "x" * 1_000_000})

    def script(asked: ChatRequest) -> ChatAnswer:
        return ChatAnswer(asked.last) if asked.is_after_tool else ChatAnswer(calls=(huge,))

    await engine.agent("bold", ask=[])
    await engine.agent("shy", ask=["write_file"])
    engine.play(script)
    group = await engine.group("bold", "shy")
    posted = await engine.post(group, "Write it.")
    seen = await engine.watch(group, posted["after"])
    types = [event["type"] for event in seen]
    assert "tool_call" in types
    posted = await engine.post(group, "Write it.", mentions=["shy"])
    await engine.watch(group, posted["after"], until="approval")


async def test_a_tool_that_is_unknown_is_told_to_the_model(engine: Engine) -> None:
    engine.play([ChatAnswer(calls=(ToolUse("launch"),)), ChatAnswer("I cannot.")])
    group = await engine.group("beck")
    assert (await engine.say(group, "Launch."))["beck"]["status"] == "done"
    engine.play(lambda _: ChatAnswer(calls=(ToolUse("launch"),)))
    turns = await engine.say(group, "Launch again.")
    assert turns["beck"]["status"] == "failed"
