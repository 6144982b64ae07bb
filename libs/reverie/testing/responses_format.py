"""The Responses API of OpenAI, as the scripted model server speaks it: Codex uses no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def read_input(body: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The texts of a request in order, and those that are results of tools."""
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    texts, results = [], []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            texts.append(_text(item["content"]))
        elif kind.endswith("_call_output"):
            results.append(_text(item["output"]))
            texts.append(results[-1])
    return texts, results


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def response_events(
    model: str, pieces: list[str], calls: list[tuple[str, str, str]], usage: tuple[int, int]
) -> Iterator[dict[str, Any]]:
    """The events of a streamed answer. `calls`: the id, name and arguments of each tool call."""
    response: dict[str, Any] = {"id": "resp_1", "object": "response", "model": model, "output": []}
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    done: list[dict[str, Any]] = []
    if pieces:
        message: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant"}
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        opened = {**message, "status": "in_progress", "content": []}
        yield {"type": "response.output_item.added", "output_index": 0, "item": opened}
        empty = {"type": "output_text", "text": "", "annotations": []}
        yield {"type": "response.content_part.added", **place, "part": empty}
        for piece in pieces:
            yield {"type": "response.output_text.delta", **place, "delta": piece}
        text = "".join(pieces)
        said = {"type": "output_text", "text": text, "annotations": []}
        yield {"type": "response.output_text.done", **place, "text": text}
        yield {"type": "response.content_part.done", **place, "part": said}
        done.append({**message, "status": "completed", "content": [said]})
        yield {"type": "response.output_item.done", "output_index": 0, "item": done[-1]}
    for call_id, name, arguments in calls:
        index = len(done)
        call = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name}
        opened = {**call, "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        place = {"item_id": call["id"], "output_index": index}
        yield {"type": "response.function_call_arguments.done", **place, "arguments": arguments}
        done.append({**call, "arguments": arguments, "status": "completed"})
        yield {"type": "response.output_item.done", "output_index": index, "item": done[-1]}
    sent, received = usage
    spent: dict[str, Any] = {"input_tokens": sent, "output_tokens": received}
    spent["total_tokens"] = sent + received
    ended = {**response, "status": "completed", "output": done, "usage": spent}
    yield {"type": "response.completed", "response": ended}
