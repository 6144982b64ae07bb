"""Reads the stored messages of a turn: whether it is answered, open calls, its answer."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolReturnPart


def is_answered(messages: Sequence[ModelMessage]) -> bool:
    """Whether the last message is a whole answer: the worker died before it could end the turn."""
    last = messages[-1] if messages else None
    return isinstance(last, ModelResponse) and not last.tool_calls


def is_open(messages: Sequence[ModelMessage], call: str) -> bool:
    """Whether a call has no result yet."""
    results = {p.tool_call_id for m in messages for p in m.parts if isinstance(p, ToolReturnPart)}
    return call not in results


def cut_to_bytes(text: str, limit: int) -> str:
    """The beginning of a text, of whole characters."""
    return text.encode()[:limit].decode("utf-8", "ignore")


def answer_text(messages: Sequence[ModelMessage]) -> str:
    """The model's text after the last tool result, continuations included."""
    texts: list[str] = []
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            if any(isinstance(part, ToolReturnPart) for part in message.parts):
                break
            continue
        texts += [part.content for part in reversed(message.parts) if isinstance(part, TextPart)]
    return "".join(reversed(texts))
