"""Goose and Roo, in the newer formats that their published sources define."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.agent.agent_payloads import FOLDER
from tests.agent.test_transcript_files import said_in, write

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
        before = said_in(path)
        _put_goose(database, [*SAID, SUMMARY])
    assert [turn.content for _, turn in before] == [text for _, _, text, _ in SAID]
    assert said_in(path) == before


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
    found = said_in(path)
    assert {(session.agent, session.external_id) for session, _ in found} == {("roo", "7")}
    asked, told, ran, ended = [turn.content for _, turn in found]
    assert [asked, told, ended] == ["Run the tests.", "I run them.", "Two tests fail."]
    assert "pytest -q" in ran
    assert "2 failed" in ran
