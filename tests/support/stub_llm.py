"""A stub language-model endpoint (OpenAI and Anthropic formats) that can fail on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

TOKENS = (100, 20)
"""Sent and received, as every answer says."""


@dataclass(frozen=True)
class LlmRequest:
    """One request: the task (the name of the answer's tool or schema), the text, the headers."""

    task: str
    instructions: str
    text: str
    headers: dict[str, str]


@dataclass
class StubModel:
    """Answers by `answer(asked)`; each fault in `faults` is played once, in order.

    Faults: slow, 429, 500, 401, words (no JSON), torn (JSON cut off), huge, broken (no HTTP JSON).
    """

    answer: Callable[[LlmRequest], Any] = lambda _: {}
    faults: list[str] = field(default_factory=list)
    asked: list[LlmRequest] = field(default_factory=list)
    retry_after: str = "0"
    torn: bool = False
    estimates_tokens: bool = False
    """Whether the usage is estimated, at four characters a token, and not `TOKENS`."""

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/chat/completions`."""
        body = await request.json()
        told = [_text(one["content"]) for one in body["messages"]]
        tools = body.get("tools")
        schema = (body.get("response_format") or {}).get("json_schema")
        task = tools[0]["function"]["name"] if tools else schema["name"] if schema else "text"
        asked = LlmRequest(task, told[0], told[-1], dict(request.headers))
        arguments = await self._play(asked)
        if isinstance(arguments, web.StreamResponse):
            return arguments
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if tools:
            call = {"name": task, "arguments": arguments}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
        else:
            message["content"] = arguments
        sent, received = self._usage(asked, arguments)
        reason = "length" if self.torn else "tool_calls" if tools else "stop"
        return web.json_response(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {
                    "prompt_tokens": sent,
                    "completion_tokens": received,
                    "total_tokens": sent + received,
                },
            }
        )

    async def messages(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/messages`."""
        body = await request.json()
        task = body["tools"][0]["name"]
        asked = LlmRequest(
            task,
            _text(body["system"]),
            _text(body["messages"][-1]["content"]),
            dict(request.headers),
        )
        arguments = await self._play(asked)
        if isinstance(arguments, web.StreamResponse):
            return arguments
        try:
            content = {
                "type": "tool_use",
                "id": "tu_1",
                "name": task,
                "input": json.loads(arguments),
            }
        except ValueError:
            content = {"type": "text", "text": arguments}
        return web.json_response(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": [content],
                "stop_reason": _reason(self.torn, content["type"]),
                "stop_sequence": None,
                "usage": {"input_tokens": TOKENS[0], "output_tokens": TOKENS[1]},
            }
        )

    async def models(self, _: web.Request) -> web.Response:
        """`GET /v1/models`."""
        return web.json_response({"object": "list", "data": [{"id": "stub", "object": "model"}]})

    def _usage(self, asked: LlmRequest, answer: str) -> tuple[int, int]:
        if not self.estimates_tokens:
            return TOKENS
        return (len(asked.instructions) + len(asked.text)) // 4, len(answer) // 4

    async def _play(self, asked: LlmRequest) -> str | web.StreamResponse:
        self.asked.append(asked)
        fault = self.faults.pop(0) if self.faults else ""
        self.torn = fault == "torn"
        told = json.dumps(self.answer(asked))
        match fault:
            case "slow":
                await asyncio.Event().wait()
            case "401" | "429" | "500":
                body = {"type": "error", "error": {"type": "error", "message": "no"}}
                headers = {"Retry-After": self.retry_after}
                return web.json_response(body, status=int(fault), headers=headers)
            case "broken":
                return web.Response(text="<html>", content_type="application/json")
            case "words":
                return "Certainly! Here are the memories you asked for."
            case "torn":
                return told[: len(told) // 2]
            case "huge":
                return web.Response(
                    body=b'{"a": "' + b"x" * 6_000_000, content_type="application/json"
                )
        return told


def _reason(torn: bool, kind: str) -> str:
    return "max_tokens" if torn else "tool_use" if kind == "tool_use" else "end_turn"


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.get("text", "") for part in content)


@asynccontextmanager
async def stub_llm() -> AsyncIterator[tuple[StubModel, str]]:
    """The endpoint and its address, as http://host:port."""
    stub = StubModel()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", stub.chat)
    app.router.add_post("/v1/messages", stub.messages)
    app.router.add_get("/v1/models", stub.models)
    async with TestServer(app, shutdown_timeout=0.1) as server:
        yield stub, str(server.make_url("/")).rstrip("/")
