"""The part of a conversation that a model sees: turns, results of tools, and their limits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from reverie.store.engine.conversations import HistoryMessage
from reverie_services.engine.turns.window import (
    FULL_RESULT_TURNS,
    WINDOW_TOKENS,
    WINDOW_TURNS,
    build_window,
    count_tokens,
    shrink_turn,
)


def _build_message(
    no: int, author: str, content: str, messages: list[Any] | None = None
) -> HistoryMessage:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return HistoryMessage(no, uuid4(), author, content, [], uuid4(), at, messages)


def _build_tool_turn(no: int, size: int) -> HistoryMessage:
    call = ToolCallPart("read_file", {"path": str(no)}, f"c{no}")
    result = ToolReturnPart("read_file", "word " * size, f"c{no}")
    messages: list[Any] = [
        ModelResponse(parts=[call]),
        ModelRequest(parts=[result]),
        ModelResponse(parts=[TextPart(f"answer {no}")]),
    ]
    dumped = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    return _build_message(no, "ada", f"answer {no}", dumped)


def _list_call_ids(messages: list[Any], kind: Any) -> list[str]:
    return [
        part.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, kind)
    ]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3000)), min_size=1, max_size=40))
def test_the_window_keeps_each_call_with_its_result(turns: list[tuple[bool, int]]) -> None:
    history = [
        _build_tool_turn(no, size) if is_own else _build_message(no, "user", "word " * size)
        for no, (is_own, size) in enumerate(turns)
    ]
    history.append(_build_message(len(history), "user", "now"))
    window = build_window(history, "ada", None, {})
    assert _list_call_ids(window, ToolCallPart) == _list_call_ids(window, ToolReturnPart)
    message_count = sum(isinstance(part, UserPromptPart) for m in window for part in m.parts)
    assert len(_list_call_ids(window, ToolCallPart)) + message_count <= WINDOW_TURNS + 1
    assert count_tokens(window) <= WINDOW_TOKENS
    assert isinstance(window[0], ModelRequest)
    assert isinstance(window[-1], ModelRequest)


def test_results_of_older_turns_are_cut() -> None:
    history = [_build_tool_turn(no, 500) for no in range(FULL_RESULT_TURNS + 2)]
    window = build_window([*history, _build_message(9, "user", "now")], "ada", None, {})
    results = [
        len(str(part.content))
        for message in window
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert [size > 1000 for size in results] == [False] * 2 + [True] * FULL_RESULT_TURNS


def test_others_are_shown_by_name_and_oneself_as_the_model() -> None:
    history = [
        _build_message(1, "user", "Hi."),
        _build_message(2, "bob", "Yes."),
        _build_message(3, "ada", "No."),
    ]
    window = build_window(history, "ada", "Do it.", {})
    first: Any = window[0]
    assert [part.content for part in first.parts] == [
        "[user] Hi.",
        "[bob] Yes.",
        "[ada] No.",
        "Do it.",
    ]


def test_a_running_turn_is_shrunk_from_its_oldest_results() -> None:
    messages = ModelMessagesTypeAdapter.validate_python(_build_tool_turn(1, 5000).messages) * 2
    shrunk = shrink_turn(messages, 7000)
    parts: list[Any] = [m.parts[0] for m in shrunk if isinstance(m, ModelRequest)]
    sizes = [len(str(part.content)) for part in parts]
    assert sizes[0] < 300 < sizes[1]
