"""Transcript formats are recognised and parsed, with bounded memory."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.agent.transcripts.files import (
    SessionTurn,
    TranscriptFormat,
    TranscriptLines,
    detect_format,
    find_transcripts,
    read_turns,
)
from reverie.agent.transcripts.importer import TranscriptImporter
from reverie.agent.transcripts.turn_filter import read_new_turns
from tests.agent.agent_payloads import FOLDER
from tests.agent.transcript_samples import AIDER, CLAUDE, CODEX, OLD_CODEX, SPECSTORY, lines

FORMATS: tuple[TranscriptFormat, ...] = ("claude-code", "codex", "specstory", "aider")


def read_file(path: Path, bad: list[int] | None = None) -> list[SessionTurn]:
    form = detect_format(path)
    assert form
    numbers: list[int] = [] if bad is None else bad
    return list(read_turns(TranscriptLines(path, lambda _: None, numbers.append), form, None))


def summarize(found: list[SessionTurn]) -> list[tuple[str, str, str]]:
    return [(talk.agent, turn.role, turn.content.splitlines()[0]) for talk, turn in found]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, newline="")
    return path


def test_claude_code_sub_agents_are_kept_apart_and_unreadable_lines_are_reported(
    tmp_path: Path,
) -> None:
    text = lines(CLAUDE[:2]) + "{broken\n" + lines(CLAUDE[2:]) + '{"type": "user", "sess'
    path = write(tmp_path, "a.jsonl", text)
    bad: list[int] = []
    found = read_file(path, bad)
    assert bad == [3]
    assert summarize(found) == [
        ("claude-code", "user", "Why does the login fail?"),
        ("claude-code", "tool", '{"command": "pytest -q"}'),
        ("claude-code/sub/subagent", "assistant", "Look for the clock."),
        ("claude-code", "assistant", "The clock was wrong."),
    ]
    talk, turn = found[0]
    assert (talk.external_id, talk.project, talk.branch) == ("s-1", "shop", "main")
    assert (turn.external_id, turn.at and turn.at.isoformat()) == (
        "u1",
        "2026-03-02T10:00:00+00:00",
    )
    assert found[2][0].external_id == "s-1/a7"
    side = write(tmp_path, "s-1/subagents/agent-a7.jsonl", lines(CLAUDE[4:5]))
    side.with_suffix(".meta.json").write_text('{"agentType": "Explore"}')
    assert [talk.agent for talk, _ in read_file(side)] == ["claude-code/sub/Explore"]


@pytest.mark.parametrize("sample", [CODEX, OLD_CODEX])
def test_codex_transcripts_are_read_in_both_formats(
    sample: list[dict[str, Any]], tmp_path: Path
) -> None:
    found = read_file(write(tmp_path, "rollout-1.jsonl", lines(sample)))
    assert summarize(found) == [
        ("codex", "user", "Run the tests"),
        ("codex", "tool", '{"command": "pytest -q"}'),
        ("codex", "assistant", "One test fails."),
    ]
    assert {talk.external_id for talk, _ in found} == {"c-1"}
    assert "Error: 1 failed" in found[1][1].content
    assert found[1][1].external_id == "call_1"


def test_an_aider_file_holds_many_sessions_and_marks_inside_fences_are_content(
    tmp_path: Path,
) -> None:
    found = read_file(write(tmp_path, "shop/.aider.chat.history.md", AIDER))
    assert [(talk.external_id, turn.external_id) for talk, turn in found] == [
        ("shop/2026-03-02T10:00:00", "00000"),
        ("shop/2026-03-02T10:00:00", "00001"),
        ("shop/2026-03-02T10:00:00", "00002"),
        ("shop/2026-03-02T10:00:00/1", "00000"),
    ]
    assert [turn.role for _, turn in found] == ["user", "assistant", "tool", "user"]
    assert found[0][1].content == "add a heading\nto the page"
    assert "#### Heading\n> quoted" in found[1][1].content
    assert found[2][1].content == "Commit 1a2b3c4 docs: Add a heading"
    assert all(turn.at and turn.at.utcoffset() is not None for _, turn in found)


def test_specstory_names_the_program_and_its_sidechains(tmp_path: Path) -> None:
    path = write(tmp_path, "shop/.specstory/history/a.md", SPECSTORY)
    found = read_file(path)
    assert summarize(found) == [
        ("cursor-ide", "user", "What is the rule?"),
        ("cursor-ide/sub/subagent", "assistant", "Read the rules."),
        ("cursor-ide", "assistant", "Prices are in cents."),
    ]
    assert found[0][0].project == "shop"
    assert {talk.external_id for talk, _ in found} == {"specstory/t-9", "specstory/t-9/sidechain"}


def test_a_folder_yields_its_transcripts_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, "p/a.jsonl", lines(CLAUDE))
    write(tmp_path, "p/README.md", "# Read me\n\n#### no chat\n")
    write(tmp_path, "p/data.jsonl", '{"id": 1}\n')
    write(tmp_path, "p/.aider.chat.history.md", AIDER)
    (tmp_path / "p" / "link.jsonl").symlink_to(tmp_path / "p" / "a.jsonl")
    found = [(path.name, form) for path, form in find_transcripts(tmp_path)]
    assert found == [(".aider.chat.history.md", "aider"), ("a.jsonl", "claude-code")]


NAMES = re.findall(
    r"\w+",
    """type payload message content role text id call_id tool_use_id input output arguments uuid
    sessionId timestamp cwd isSidechain action name metadata git source""",
)

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            NAMES
        )
        | st.text(max_size=5),
        inner | st.sampled_from(["user", "assistant", "message", "tool_use", "tool_result", "text",
            "function_call", "function_call_output", "response_item", "session_meta", '{"a":[']),
        max_size=6,
    ),
    max_leaves=12,
)  # fmt: skip
marks = st.sampled_from(
    ["# aider chat started at 2026-03-02 10:00:00", "#### x", "> y", "```", "~~~", "_**User**_",
     "_**Agent (m 2026-01-01 00:00:00Z)**_", "<tool-use><details>", "</details></tool-use>",
     "<think><details>", "# aider chat started at 9999-99-99 10:00:00"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    objects=st.lists(junk, max_size=8),
    text=st.lists(marks | st.text(max_size=30), max_size=12),
    tail=st.binary(max_size=40),
)
def test_no_parser_fails_on_any_input(
    objects: list[Any], text: list[str], tail: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "junk"
    written = [json.dumps(one) for one in objects] + text
    path.write_bytes("\n".join(written).encode("utf-8", "surrogatepass") + tail)
    detect_format(path)
    for form in FORMATS:
        for talk, turn in read_turns(
            TranscriptLines(path, lambda _: None, lambda _: None), form, None
        ):
            assert talk.external_id
            assert turn.content


async def test_a_long_file_is_read_in_little_memory_and_overlong_lines_are_skipped(
    tmp_path: Path,
) -> None:
    path = tmp_path / "long.jsonl"
    said = {**CLAUDE[1], "message": {"role": "user", "content": "word " * 4_000}}
    path.write_text(lines({**said, "uuid": f"u{n}"} for n in range(500)))
    run = TranscriptImporter(None)
    done: list[int] = []
    tracemalloc.start()
    try:
        await run.import_file(path, "claude-code", done.append)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(done) == path.stat().st_size > 10_000_000
    assert peak < 3_000_000, peak
    with path.open("a") as file:
        file.write("x" * 17_000_000 + "\n" + lines(CLAUDE[-1:]))
    await run.import_file(path, "claude-code", done.append)
    assert (run.report.accepted, run.report.unreadable) == (1001, 1)
    assert run.report.notes == [f"{path}:501: cannot be read, skipped"]


@pytest.mark.parametrize("sample", [CLAUDE, CODEX, OLD_CODEX])
@pytest.mark.parametrize("value", [{}, [], 5, None])
def test_a_string_field_may_hold_any_json_value(
    sample: list[dict[str, Any]], value: object, tmp_path: Path
) -> None:
    fields = ("type", "role")
    broken = [
        {**one, **{name: value for name in fields if name in one}}
        | {
            name: {**inner, **dict.fromkeys(fields, value)}
            for name, inner in one.items()
            if name in {"payload", "message"}
        }
        for one in sample
    ]
    good = lines(sample)
    path = write(tmp_path, "a.jsonl", good + lines(broken))
    alone = write(tmp_path, "b.jsonl", good)
    assert summarize(read_file(path)) == summarize(read_file(alone))


def test_pipes_devices_and_links_among_transcripts_are_not_opened(tmp_path: Path) -> None:
    text = lines(CLAUDE)
    good = write(tmp_path, "good.jsonl", text)
    os.mkfifo(tmp_path / "pipe.jsonl")
    os.mkfifo(tmp_path / "good.meta.json")
    (tmp_path / "device.jsonl").symlink_to("/dev/zero")
    assert [path for path, _ in find_transcripts(tmp_path)] == [good]
    assert read_file(good)
    (tmp_path / "good.meta.json").unlink()
    (tmp_path / "good.meta.json").symlink_to("/dev/zero")
    assert read_file(good)
    assert read_new_turns("/dev/zero", 0) == ([], 0, False)


@pytest.mark.parametrize("folder", ["/tmp/a\0b", "/tmp/a\ud800b", "/tmp/\x1b[31m\n"])
def test_a_session_in_a_folder_that_cannot_exist_is_read(folder: str, tmp_path: Path) -> None:
    entry = {**CLAUDE[1], "cwd": folder}
    assert len(read_file(write(tmp_path, "a.jsonl", lines([entry])))) == 1


# crates/goose/src/session/session_manager.rs, as its migrations leave the tables at version 7.
GOOSE_TABLES = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '',
  description TEXT NOT NULL DEFAULT '', user_set_name BOOLEAN DEFAULT FALSE,
  session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL,
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  extension_data TEXT DEFAULT '{}', total_tokens INTEGER, schedule_id TEXT, recipe_json TEXT,
  user_recipe_values_json TEXT, provider_name TEXT, model_config_json TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content_json TEXT NOT NULL,
  created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  tokens INTEGER, metadata_json TEXT, message_id TEXT);
"""
SAID = [
    ("msg_1", "user", "Why do prices have cents?", {"userVisible": True, "agentVisible": True}),
    ("msg_2", "assistant", "Floats lost money.", {"userVisible": True, "agentVisible": True}),
]
SUMMARY = ("msg_3", "user", "They spoke of cents.", {"userVisible": False, "agentVisible": True})


def _put_goose(database: sqlite3.Connection, messages: list[tuple[str, str, str, Any]]) -> None:
    """As `replace_conversation` does: the rows get new numbers."""
    database.execute("DELETE FROM messages")
    for message_id, role, text, metadata in messages:
        database.execute(
            "INSERT INTO messages (session_id, role, content_json, created_timestamp,"
            " metadata_json, message_id) VALUES ('20260302_1', ?, ?, 1772445600, ?, ?)",
            [role, json.dumps([{"type": "text", "text": text}]), json.dumps(metadata), message_id],
        )
    database.commit()


def test_a_session_that_goose_compacts_is_not_handed_over_again(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(GOOSE_TABLES)
        insert = "INSERT INTO sessions (id, working_dir) VALUES ('20260302_1', ?)"
        database.execute(insert, [FOLDER])
        _put_goose(database, SAID)
        before = read_file(path)
        _put_goose(database, [*SAID, SUMMARY])
    assert [turn.content for _, turn in before] == [text for _, _, text, _ in SAID]
    assert read_file(path) == before


def test_roo_keeps_calls_as_parts_and_its_summaries_are_nobodys_words(tmp_path: Path) -> None:
    # src/core/task-persistence/rooMessage.ts, version 2.
    call = {"type": "tool-call", "toolCallId": "call_1", "toolName": "execute_command"}
    result = {"type": "tool-result", "toolCallId": "call_1", "toolName": "execute_command"}
    messages: list[dict[str, Any]] = [
        {"role": "user", "ts": 1772445600000, "content": [
            {"type": "text", "text": "<user_message>\nRun the tests.\n</user_message>"}]},
        {"type": "reasoning", "encrypted_content": "x", "ts": 1772445601000},
        {"role": "assistant", "ts": 1772445602000, "content": [
            {"type": "text", "text": "I run them."}, {**call, "input": {"command": "pytest -q"}}]},
        {"role": "tool", "ts": 1772445603000, "content": [
            {**result, "output": {"type": "text", "value": "[ERROR] 2 failed"}}]},
        {"role": "user", "isSummary": True, "condenseId": "c1", "content": "They ran tests."},
        {"role": "user", "isTruncationMarker": True, "truncationId": "t1", "content": "Cut."},
        {"role": "assistant", "content": "Two tests fail."},
    ]  # fmt: skip
    folder = "rooveterinaryinc.roo-cline/tasks/7"
    document = json.dumps({"version": 2, "messages": messages})
    path = write(tmp_path, f"{folder}/api_conversation_history.json", document)
    found = read_file(path)
    assert {(session.agent, session.external_id) for session, _ in found} == {("roo", "7")}
    asked, told, ran, ended = [turn.content for _, turn in found]
    assert [asked, told, ended] == ["Run the tests.", "I run them.", "Two tests fail."]
    assert "pytest -q" in ran
    assert "2 failed" in ran
