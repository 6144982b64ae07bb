"""Builds the history that a model sees: the newest turns that fit, a call never without its result.

Nothing is summarised: recall can bring back what falls out of the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from reverie.inference.token_counters import EstimatingTokenCounter
from reverie.store.engine.conversations import HistoryMessage, StoredImage

WINDOW_TURNS = 25
WINDOW_TOKENS = 32_768
FULL_RESULT_TURNS = 3
"""The agent's own turns after which bodies of tool results are cut."""
CUT_RESULT_CHARS = 200
IMAGE_TOKENS = 1_600
_COUNTER = EstimatingTokenCounter()


def count_tokens(messages: Sequence[ModelMessage]) -> int:
    """Estimated tokens of messages."""
    return sum(_count_part(part) for message in messages for part in message.parts)


def _count_part(part: object) -> int:
    content = part.args_as_json_str() if isinstance(part, ToolCallPart) else None
    content = content if content is not None else getattr(part, "content", "")
    items = content if isinstance(content, list | tuple) else [content]
    return sum(
        IMAGE_TOKENS if isinstance(item, BinaryContent) else _COUNTER.count(str(item))
        for item in items
    )


def build_window(
    history: Sequence[HistoryMessage],
    agent: str,
    task: str | None,
    images: Mapping[UUID, StoredImage],
    tokens: int = WINDOW_TOKENS,
) -> list[ModelMessage]:
    """The messages that a request of an agent begins with; the last one holds what is asked now.

    `history` is that of the group, and ends with what the agent answers to. Each entry is kept
    whole or not at all: an agent's own turn is one, with all its tool calls. `task`: what another
    agent handed on, asked last.
    """
    blocks = [_build_block(entry, agent, images) for entry in history]
    own_turns = 0
    for index in reversed(range(len(blocks))):
        if history[index].author == agent and history[index].messages:
            own_turns += 1
            if own_turns > FULL_RESULT_TURNS:
                blocks[index] = [cut_results(message) for message in blocks[index]]
    if task is not None:
        blocks.append([ModelRequest(parts=[UserPromptPart(task)])])
    kept: list[list[ModelMessage]] = []
    room = tokens
    for block in reversed(blocks[-WINDOW_TURNS:]):
        size = count_tokens(block)
        if kept and size > room:
            break
        room -= size
        kept.append(block)
    return _merge([message for block in reversed(kept) for message in block])


def _build_block(
    entry: HistoryMessage, agent: str, images: Mapping[UUID, StoredImage]
) -> list[ModelMessage]:
    if entry.author == agent:
        own = ModelMessagesTypeAdapter.validate_python(entry.messages or [])
        if own:
            return list(own)
    parts: list[UserContent] = [f"[{entry.author}] {entry.content}"]
    parts += [
        BinaryContent(images[id].data, media_type=images[id].media_type)
        for id in entry.images
        if id in images
    ]
    content = parts if len(parts) > 1 else str(parts[0])
    return [ModelRequest(parts=[UserPromptPart(content, timestamp=entry.at)])]


def _merge(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Requests that follow one another become one, and the first message is a request."""
    merged: list[ModelMessage] = []
    for message in messages:
        if merged and isinstance(message, ModelRequest) and isinstance(merged[-1], ModelRequest):
            merged[-1] = replace(merged[-1], parts=[*merged[-1].parts, *message.parts])
        elif merged or isinstance(message, ModelRequest):
            merged.append(message)
        else:
            merged += [ModelRequest(parts=[UserPromptPart("...")]), message]
    return merged


def cut_results(message: ModelMessage) -> ModelMessage:
    """The message with the bodies of its tool results cut; each call keeps its result."""
    if isinstance(message, ModelResponse):
        return message
    parts = [_cut_result(part) for part in message.parts]
    return replace(message, parts=parts)


def _cut_result(part: Any) -> Any:
    if not isinstance(part, ToolReturnPart) or len(str(part.content)) <= CUT_RESULT_CHARS:
        return part
    return replace(part, content=f"{str(part.content)[:CUT_RESULT_CHARS]} [cut]")


def shrink_turn(messages: Sequence[ModelMessage], tokens: int) -> list[ModelMessage]:
    """The messages of a running turn, the oldest tool results cut until they fit."""
    shrunk = list(messages)
    for index, message in enumerate(shrunk[:-1]):
        if count_tokens(shrunk) <= tokens:
            break
        shrunk[index] = cut_results(message)
    return shrunk
