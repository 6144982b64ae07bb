"""The scripted model speaks the formats of OpenAI and Anthropic as their libraries know them.

The tests import these themselves: they take seconds of every process that collects tests.
"""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from pydantic import BaseModel, TypeAdapter

from reverie.contracts.events import read_server_sent_events
from reverie.testing.chat_server import ChatAnswer, ChatRequest, Fault, ToolUse, chat_server

ANSWER = ChatAnswer(
    "The answer is 42.", thinking="Let me see.", calls=(ToolUse("look", {"at": "x"}),)
)
ASKED: list[Any] = [{"role": "user", "content": "What is it?"}]
DIALECT = {"reasoning_content"}
"""Fields that OpenAI does not know: how Ollama and others send thoughts."""


def _unknown_fields(value: Any) -> set[str]:
    """The fields that a library did not expect, in all parts."""
    if isinstance(value, list):
        return {name for item in value for name in _unknown_fields(item)}
    if not isinstance(value, BaseModel):
        return set()
    parts = {name for _, part in value for name in _unknown_fields(part)}
    return parts | set(value.model_extra or {})


async def _stream(url: str, body: dict[str, Any]) -> list[tuple[str, str]]:
    async with aiohttp.ClientSession() as http, http.post(url, json=body) as answer:
        return [(one.event, one.data) async for one in read_server_sent_events(answer.content)]


@pytest.mark.parametrize("fault", ["", "length"])
async def test_every_chunk_is_one_of_openai(fault: Fault) -> None:
    from openai.types.chat import ChatCompletionChunk

    answer = ChatAnswer(ANSWER.text, ANSWER.calls, ANSWER.thinking, fault)
    async with chat_server(lambda _: answer) as server:
        body = {"model": "m", "messages": ASKED, "stream": True}
        sent = await _stream(f"{server.url}/v1/chat/completions", body)
    assert sent[-1][1] == "[DONE]"
    chunks = [ChatCompletionChunk.model_validate(json.loads(data)) for _, data in sent[:-1]]
    assert {name for chunk in chunks for name in _unknown_fields(chunk)} <= DIALECT
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert [reason for reason in reasons if reason] == ["length" if fault else "tool_calls"]


@pytest.mark.parametrize("fault", ["", "length"])
async def test_every_event_is_one_of_anthropic(fault: Fault) -> None:
    from anthropic.types import RawMessageStreamEvent

    known: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
    answer = ChatAnswer(ANSWER.text, ANSWER.calls, ANSWER.thinking, fault)
    async with chat_server(lambda _: answer) as server:
        body = {"model": "m", "messages": ASKED, "stream": True, "max_tokens": 9}
        sent = await _stream(f"{server.url}/v1/messages", body)
    events = [known.validate_python(json.loads(data)) for _, data in sent]
    assert [event.type for event in events] == [name for name, _ in sent]
    assert {name for event in events for name in _unknown_fields(event)} == set()


async def test_both_libraries_read_what_was_scripted() -> None:
    import anthropic
    import openai

    async with chat_server(lambda _: ANSWER) as server:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k") as client:
            stream = await client.chat.completions.create(model="m", messages=ASKED, stream=True)
            deltas = [c.choices[0].delta async for c in stream if c.choices]
        assert "".join(delta.content or "" for delta in deltas) == ANSWER.text
        async with (
            anthropic.AsyncAnthropic(base_url=server.url, api_key="k") as other,
            other.messages.stream(model="m", messages=ASKED, max_tokens=9) as messages,
        ):
            whole = await messages.get_final_message()
    said = {block.type: block.model_dump() for block in whole.content}
    assert said["thinking"]["thinking"] == ANSWER.thinking
    assert said["text"]["text"] == ANSWER.text
    assert (said["tool_use"]["name"], said["tool_use"]["input"]) == ("look", {"at": "x"})
    assert whole.stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("fault", "name", "kind"),
    [
        ("429", "RateLimitError", "rate_limit_error"),
        ("500", "InternalServerError", "api_error"),
        ("401", "AuthenticationError", "authentication_error"),
        ("overflow", "BadRequestError", "invalid_request_error"),
    ],
)
async def test_both_libraries_know_each_refusal(fault: Fault, name: str, kind: str) -> None:
    import anthropic
    import openai

    async with chat_server(lambda _: ChatAnswer(fault=fault, retry_after="7")) as server:
        keys: dict[str, Any] = {"api_key": "k", "max_retries": 0}
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", **keys) as client:
            with pytest.raises(getattr(openai, name)) as refused:
                await client.chat.completions.create(model="m", messages=ASKED, stream=True)
        async with anthropic.AsyncAnthropic(base_url=server.url, **keys) as other:
            with pytest.raises(getattr(anthropic, name)) as denied:
                await other.messages.create(model="m", messages=ASKED, max_tokens=9)
    assert (refused.value.type, denied.value.body["error"]["type"]) == (kind, kind)
    if fault == "429":
        assert refused.value.response.headers["retry-after"] == "7"
    if fault == "overflow":
        assert refused.value.code == "context_length_exceeded"


async def test_a_streamed_answer_and_a_tool_call_are_read_by_the_client_of_openai() -> None:
    from openai import AsyncOpenAI
    from openai.types.responses.response_input_param import FunctionCallOutput

    answers = [ChatAnswer("Two words.", calls=(ToolUse("look", {"at": "x"}),)), ChatAnswer("Done.")]
    seen: list[ChatRequest] = []

    def script(request: ChatRequest) -> ChatAnswer:
        seen.append(request)
        return answers[len(seen) - 1]

    async with (
        chat_server(script) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client,
    ):
        async with client.responses.stream(model="m", instructions="Be brief.", input="Go") as run:
            pieces = [
                event.delta async for event in run if event.type == "response.output_text.delta"
            ]
            first = await run.get_final_response()
        assert "".join(pieces) == first.output_text == "Two words."
        [call] = [item for item in first.output if item.type == "function_call"]
        assert (call.name, call.arguments) == ("look", '{"at": "x"}')
        result: FunctionCallOutput = {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": "seen",
        }
        async with client.responses.stream(model="m", input=[result]) as run:
            assert (await run.get_final_response()).output_text == "Done."
    assert (seen[0].system, seen[0].texts) == ("Be brief.", ("Go",))
    assert seen[1].is_after_tool
    assert seen[1].results == ("seen",)
