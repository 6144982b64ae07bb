"""A scripted model that speaks the wire formats of OpenAI and Anthropic, with streams and faults.

OpenAI's are Chat Completions and Responses.

    async with chat_server(script) as server:
        server.url  # OpenAI: f"{url}/v1", Anthropic: url

A script says for each request what the model answers. It sees what a model would see.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web
from aiohttp.test_utils import TestServer

from reverie.testing.responses_format import read_input, response_events

_REFUSALS = {"429": "rate_limit_error", "500": "api_error", "401": "authentication_error"}
Fault = Literal["", "429", "500", "401", "overflow", "cut", "malformed", "length", "refuse"]


@dataclass(frozen=True)
class ToolUse:
    """A tool call of the model. `arguments`: as text, so that they can be malformed."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The arguments as they are sent."""
        return (
            self.arguments if isinstance(self.arguments, str) else json.dumps(dict(self.arguments))
        )


@dataclass(frozen=True)
class ChatAnswer:
    """What the model answers.

    `fault`: an HTTP status, `overflow` (the context is too long), `cut` (the connection breaks
    after the first piece of text), `length` (max_tokens was met). `seconds`: over how long it is
    said. `hold`: its end waits until this is true. `raw`: lines that are sent in place of all that,
    as they are; they may have no end.
    """

    text: str = ""
    calls: tuple[ToolUse, ...] = ()
    thinking: str = ""
    fault: Fault = ""
    retry_after: str = "0"
    seconds: float = 0.0
    hold: Callable[[], bool] | None = None
    raw: Iterable[str] | None = None


@dataclass(frozen=True)
class ChatRequest:
    """A request as the script sees it: the system prompt, the texts in order, the tools."""

    model: str
    system: str
    texts: tuple[str, ...]
    results: tuple[str, ...]
    tools: tuple[str, ...]
    body: Mapping[str, Any]

    @property
    def last(self) -> str:
        """The last text or tool result."""
        return self.texts[-1] if self.texts else ""

    @property
    def body_text(self) -> str:
        """All of the request, as a text to look through."""
        return json.dumps(self.body)

    @property
    def is_after_tool(self) -> bool:
        """Whether the model is given the result of a tool."""
        return bool(self.results) and self.results[-1] == self.last


ChatScript = Callable[[ChatRequest], ChatAnswer]


@dataclass
class ChatServer:
    """The server; `requests` are the requests in their order.

    `estimates_tokens`: usage is estimated at four characters a token; else it is 100 and 20.
    """

    script: ChatScript
    url: str = ""
    requests: list[ChatRequest] = field(default_factory=list)
    calls_made: int = 0
    estimates_tokens: bool = False

    async def handle_openai(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/chat/completions`, streamed."""
        chat_request = _read_openai(await request.json())
        answer = self._ask(chat_request)
        if (refusal := _refuse(answer)) is not None:
            return refusal
        response = await _begin(request)
        if answer.raw is not None:
            return await _send_lines(response, answer.raw)
        for piece, thought in _pieces(answer):
            await _pause(answer)
            delta = {"reasoning_content": piece} if thought else {"content": piece}
            await _send(response, _openai_chunk(chat_request, delta))
            if answer.fault == "cut":
                _break(request)
                return response
        for index, call in enumerate(answer.calls):
            function = {"name": call.name, "arguments": call.text}
            entry = {"index": index, "id": self._call_id(), "type": "function"}
            called = {"tool_calls": [{**entry, "function": function}]}
            await _send(response, _openai_chunk(chat_request, called))
        await _hold(answer)
        reason = "length" if answer.fault == "length" else "tool_calls" if answer.calls else "stop"
        await _send(response, _openai_chunk(chat_request, {}, reason))
        sent, received = self._usage(chat_request, answer)
        usage = {"prompt_tokens": sent, "completion_tokens": received}
        usage["total_tokens"] = sent + received
        await _send(response, {**_openai_chunk(chat_request, {}), "choices": [], "usage": usage})
        await response.write(b"data: [DONE]\n\n")
        return response

    async def handle_anthropic(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/messages`, streamed."""
        chat_request = _read_anthropic(await request.json())
        answer = self._ask(chat_request)
        if (refusal := _refuse(answer)) is not None:
            return refusal
        response = await _begin(request)
        message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant"}
        message |= {"model": chat_request.model, "content": [], "stop_reason": None}
        sent, received = self._usage(chat_request, answer)
        message |= {"stop_sequence": None, "usage": {"input_tokens": sent, "output_tokens": 1}}
        await _send(response, {"type": "message_start", "message": message}, named=True)
        index = 0
        if answer.thinking:
            block: dict[str, Any] = {"type": "thinking", "thinking": "", "signature": ""}
            thought = {"type": "thinking_delta", "thinking": answer.thinking}
            signed = {"type": "signature_delta", "signature": "c2lnbmVk"}
            await _send(response, _block(index, block), named=True)
            await _send(response, _block_delta(index, thought), named=True)
            await _send(response, _block_delta(index, signed), named=True)
            await _send(response, {"type": "content_block_stop", "index": index}, named=True)
            index += 1
        if answer.text:
            block = {"type": "text", "text": ""}
            await _send(response, _block(index, block), named=True)
            for piece, is_thought in _pieces(answer):
                if is_thought:
                    continue
                await _pause(answer)
                delta = {"type": "text_delta", "text": piece}
                await _send(response, _block_delta(index, delta), named=True)
                if answer.fault == "cut":
                    _break(request)
                    return response
            await _send(response, {"type": "content_block_stop", "index": index}, named=True)
            index += 1
        for call in answer.calls:
            block = {"type": "tool_use", "id": self._call_id(), "name": call.name, "input": {}}
            await _send(response, _block(index, block), named=True)
            delta = {"type": "input_json_delta", "partial_json": call.text}
            await _send(response, _block_delta(index, delta), named=True)
            await _send(response, {"type": "content_block_stop", "index": index}, named=True)
            index += 1
        await _hold(answer)
        reason = "tool_use" if answer.calls else "end_turn"
        reason = "max_tokens" if answer.fault == "length" else reason
        end = {"stop_reason": reason, "stop_sequence": None}
        spent = {"output_tokens": received}
        await _send(response, {"type": "message_delta", "delta": end, "usage": spent}, named=True)
        await _send(response, {"type": "message_stop"}, named=True)
        return response

    async def handle_responses(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/responses`, streamed."""
        body = await request.json()
        texts, results = read_input(body)
        tools = tuple(tool.get("name", tool["type"]) for tool in body.get("tools") or ())
        system = body.get("instructions") or ""
        chat_request = ChatRequest(body["model"], system, tuple(texts), tuple(results), tools, body)
        answer = self._ask(chat_request)
        if (refusal := _refuse(answer)) is not None:
            return refusal
        response = await _begin(request)
        calls = [(self._call_id(), call.name, call.text) for call in answer.calls]
        pieces = [piece for piece, is_thought in _pieces(answer) if not is_thought]
        for event in response_events(
            chat_request.model, pieces, calls, self._usage(chat_request, answer)
        ):
            if event["type"] == "response.output_text.delta":
                await _pause(answer)
            elif event["type"] == "response.completed":
                await _hold(answer)
            await _send(response, event, named=True)
            if answer.fault == "cut" and event["type"] == "response.output_text.delta":
                _break(request)
                return response
        return response

    def _ask(self, chat_request: ChatRequest) -> ChatAnswer:
        self.requests.append(chat_request)
        return self.script(chat_request)

    def _usage(self, chat_request: ChatRequest, answer: ChatAnswer) -> tuple[int, int]:
        if not self.estimates_tokens:
            return 100, 20
        said = len(answer.text) + sum(len(call.text) for call in answer.calls)
        return len(chat_request.body_text) // 4, said // 4

    def _call_id(self) -> str:
        self.calls_made += 1
        return f"call_{self.calls_made}"


@asynccontextmanager
async def chat_server(
    script: ChatScript, port: int | None = None, estimates_tokens: bool = False
) -> AsyncIterator[ChatServer]:
    """Opens the server on a port of 127.0.0.1."""
    server = ChatServer(script, estimates_tokens=estimates_tokens)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", server.handle_openai)
    app.router.add_post("/v1/messages", server.handle_anthropic)
    app.router.add_post("/v1/responses", server.handle_responses)
    async with TestServer(app, port=port, shutdown_timeout=0.1) as running:
        server.url = str(running.make_url("/")).rstrip("/")
        yield server


def _read_openai(body: Mapping[str, Any]) -> ChatRequest:
    messages = body["messages"]
    system = "\n".join(
        _text(m["content"]) for m in messages if m["role"] in ("system", "developer")
    )
    said = [m for m in messages if m["role"] in ("user", "tool", "assistant")]
    return ChatRequest(
        body["model"],
        system,
        tuple(_text(m.get("content")) for m in said),
        tuple(_text(m["content"]) for m in said if m["role"] == "tool"),
        tuple(tool["function"]["name"] for tool in body.get("tools") or ()),
        body,
    )


def _read_anthropic(body: Mapping[str, Any]) -> ChatRequest:
    texts, results = [], []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            if block["type"] == "tool_result":
                results.append(_text(block["content"]))
                texts.append(results[-1])
            elif block["type"] == "text":
                texts.append(block["text"])
    return ChatRequest(
        body["model"],
        _text(body.get("system")),
        tuple(texts),
        tuple(results),
        tuple(tool["name"] for tool in body.get("tools") or ()),
        body,
    )


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.get("text", "") for part in content)


def _refuse(answer: ChatAnswer) -> web.Response | None:
    if answer.fault in {"429", "500", "401"}:
        refusal = {"type": "error", "error": {"type": _REFUSALS[answer.fault], "message": "no"}}
        headers = {"Retry-After": answer.retry_after}
        return web.json_response(refusal, status=int(answer.fault), headers=headers)
    if answer.fault == "overflow":
        reason = "prompt is too long: maximum context length exceeded"
        cause = {"type": "invalid_request_error", "code": "context_length_exceeded"}
        error = {"type": "error", "error": {"message": reason, **cause}}
        return web.json_response(error, status=400)
    return None


def _pieces(answer: ChatAnswer) -> list[tuple[str, bool]]:
    """The pieces of the answer, and whether each is a thought."""
    thoughts = [(answer.thinking, True)] if answer.thinking else []
    words = answer.text.split(" ")
    spaced = [f"{word} " for word in words[:-1]] + [words[-1]]
    return [*thoughts, *((word, False) for word in spaced if word)]


async def _pause(answer: ChatAnswer) -> None:
    if answer.seconds:
        await asyncio.sleep(answer.seconds / max(len(_pieces(answer)), 1))


async def _hold(answer: ChatAnswer) -> None:
    # What it waits for happens in another loop.
    while answer.hold is not None and not answer.hold():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def _begin(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    return response


def _break(request: web.Request) -> None:
    """Ends the connection within the answer."""
    if request.transport is not None:
        request.transport.abort()


async def _send(response: web.StreamResponse, data: Mapping[str, Any], named: bool = False) -> None:
    name = f"event: {data['type']}\n" if named else ""
    await response.write(f"{name}data: {json.dumps(data)}\n\n".encode())


async def _send_lines(response: web.StreamResponse, lines: Iterable[str]) -> web.StreamResponse:
    with suppress(ConnectionError):
        for line in lines:
            await response.write(line.encode() + b"\n\n")
    return response


def _openai_chunk(
    chat_request: ChatRequest, delta: Mapping[str, Any], reason: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": reason}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1}
    return {**chunk, "model": chat_request.model, "choices": [choice]}


def _block(index: int, block: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _block_delta(index: int, delta: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}
