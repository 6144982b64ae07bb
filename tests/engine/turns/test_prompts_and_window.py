"""The static prompt, the window of history, and the search for repeated calls: pure parts."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
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

from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR
from reverie.store.engine.conversations import HistoryMessage
from reverie_services.engine.events import DeltaRedactor
from reverie_services.engine.prompts import PERSONAS, build_static_prompt, load_templates
from reverie_services.engine.turns.repeated_calls import find_repetition, sign_call
from reverie_services.engine.turns.window import (
    FULL_RESULT_TURNS,
    WINDOW_TOKENS,
    WINDOW_TURNS,
    build_window,
    count_tokens,
    shrink_turn,
)


def test_both_languages_have_the_same_templates() -> None:
    english, chinese = load_templates("en"), load_templates("zh")
    assert english.keys() == chinese.keys()
    assert english.keys() > {f"persona-{name}" for name in PERSONAS}
    for name, text in english.items():
        places = re.findall(r"\{\w+\}", text)
        assert sorted(places) == sorted(re.findall(r"\{\w+\}", chinese[name]))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("mode", ["unified", "plan", "dream"])
def test_the_static_prompt_has_the_same_bytes_every_time(language: str, mode: str) -> None:
    first = build_static_prompt("ada", language, "beck", mode, ["bob", "cy"], ["recall", "x"])
    second = build_static_prompt("ada", language, "beck", mode, ["cy", "bob"], ["x", "recall"])
    assert first.encode() == second.encode()
    assert "{" not in first
    assert load_templates(language)["persona-beck"] in first


def _said(no: int, author: str, content: str, messages: list[Any] | None = None) -> HistoryMessage:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return HistoryMessage(no, uuid4(), author, content, [], uuid4(), at, messages)


def _with_tool(no: int, size: int) -> HistoryMessage:
    call = ToolCallPart("read_file", {"path": str(no)}, f"c{no}")
    result = ToolReturnPart("read_file", "word " * size, f"c{no}")
    messages: list[Any] = [
        ModelResponse(parts=[call]),
        ModelRequest(parts=[result]),
        ModelResponse(parts=[TextPart(f"answer {no}")]),
    ]
    dumped = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    return _said(no, "ada", f"answer {no}", dumped)


def _call_ids(messages: list[Any], kind: Any) -> list[str]:
    return [
        part.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, kind)
    ]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3000)), min_size=1, max_size=40))
def test_the_window_keeps_each_call_with_its_result(turns: list[tuple[bool, int]]) -> None:
    history = [
        _with_tool(no, size) if is_own else _said(no, "user", "word " * size)
        for no, (is_own, size) in enumerate(turns)
    ]
    history.append(_said(len(history), "user", "now"))
    window = build_window(history, "ada", None, {})
    assert _call_ids(window, ToolCallPart) == _call_ids(window, ToolReturnPart)
    said = sum(isinstance(part, UserPromptPart) for m in window for part in m.parts)
    assert len(_call_ids(window, ToolCallPart)) + said <= WINDOW_TURNS + 1
    assert count_tokens(window) <= WINDOW_TOKENS
    assert isinstance(window[0], ModelRequest)
    assert isinstance(window[-1], ModelRequest)


def test_results_of_older_turns_are_cut() -> None:
    history = [_with_tool(no, 500) for no in range(FULL_RESULT_TURNS + 2)]
    window = build_window([*history, _said(9, "user", "now")], "ada", None, {})
    results = [
        len(str(part.content))
        for message in window
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert [size > 1000 for size in results] == [False] * 2 + [True] * FULL_RESULT_TURNS


def test_others_are_shown_by_name_and_oneself_as_the_model() -> None:
    history = [_said(1, "user", "Hi."), _said(2, "bob", "Yes."), _said(3, "ada", "No.")]
    window = build_window(history, "ada", "Do it.", {})
    first: Any = window[0]
    assert [part.content for part in first.parts] == [
        "[user] Hi.",
        "[bob] Yes.",
        "[ada] No.",
        "Do it.",
    ]


def test_a_running_turn_is_shrunk_from_its_oldest_results() -> None:
    messages = ModelMessagesTypeAdapter.validate_python(_with_tool(1, 5000).messages) * 2
    shrunk = shrink_turn(messages, 7000)
    parts: list[Any] = [m.parts[0] for m in shrunk if isinstance(m, ModelRequest)]
    sizes = [len(str(part.content)) for part in parts]
    assert sizes[0] < 300 < sizes[1]


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4), st.lists(st.sampled_from("xyz")))
def test_a_block_of_up_to_four_calls_is_found_when_it_comes_the_third_time(
    block: list[str], before: list[str]
) -> None:
    assert find_repetition([*before, *block * 3]) is not None


def test_calls_that_only_look_alike_are_no_repetition() -> None:
    calls = [sign_call("read_file", {"path": str(number % 7)}) for number in range(30)]
    assert find_repetition(calls) is None
    assert sign_call("x", {"a": 1, "b": 2}) == sign_call("x", {"b": 2, "a": 1})


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60))
def test_a_text_streamed_in_pieces_is_redacted_as_a_whole(sizes: list[int]) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    text = f"first line\nthe token is {token} and\npassword: hunter2hunter2\nthe end"
    redactor, said, place = DeltaRedactor(CREDENTIAL_REDACTOR), "", 0
    for size in sizes:
        said += redactor.add(text[place : place + size])
        place += size
    said += redactor.add(text[place:], is_last=True)
    assert token not in said
    assert "hunter2hunter2" not in said
    assert said.startswith("first line\nthe token is ")
    assert said.endswith("the end")


_LINES = "\n".join("MIIEow" + "qZ7xK1vB9mT4" * 4 + str(line) for line in range(10, 30))
_PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{_LINES}\n-----END RSA PRIVATE KEY-----"
_NUMBER = "Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7GQ5sLKMgvf"
_TOKEN = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiJ" + "x7Kq2vBn9T" * 60 + "." + "Zr4mWq8Lp2" * 5


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        (_PEM, _LINES[:40]),
        (_PEM.replace("\n", "\\n"), _LINES[:40]),
        (f'{{"kty": "RSA",\n "d": "{_NUMBER}"}}', _NUMBER),
        (f'{{"d": "{_NUMBER}",\n "kty": "RSA"}}', _NUMBER),
        ("password:\n  hunter2hunter2", "hunter2hunter2"),
        (f"token {_TOKEN}", _TOKEN[40:80]),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_a_streamed_credential_of_several_lines_is_redacted(
    secret: str, shown: str, size: int
) -> None:
    text = "before it\n" * 300 + f"here: {secret}\nand after it " + "all is well. " * 400
    redactor = DeltaRedactor(CREDENTIAL_REDACTOR)
    pieces = [redactor.add(text[at : at + size]) for at in range(0, len(text), size)]
    said = "".join(pieces) + redactor.add("", is_last=True)
    assert shown in text
    assert shown not in said
    assert said == CREDENTIAL_REDACTOR.redact(text).text


def test_a_private_key_that_is_cut_off_is_redacted() -> None:
    redactor = DeltaRedactor(CREDENTIAL_REDACTOR)
    said = [redactor.add(word + "\n") for word in _PEM.split("\n")[:-4]]
    assert "".join(said) + redactor.add("", is_last=True) == "[REDACTED_PRIVATE_KEY]\n"
