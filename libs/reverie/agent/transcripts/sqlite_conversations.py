"""Reads the conversations that OpenCode, Kilo and Goose store in SQLite.

The file is opened for reading only. A table or a column that a version of the agent lacks makes
the file one without conversations, never an error.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from reverie.agent.coding_agents import rename_arguments
from reverie.agent.transcripts.claude_code import extract_text, format_tool_call
from reverie.agent.transcripts.sources import (
    SessionTurn,
    TranscriptLines,
    TranscriptSession,
    dict_items,
    non_blank_text,
    parse_epoch,
    project_of_folder,
)
from reverie.agent.transcripts.turns import (
    ParsedTurn,
    dict_or_empty,
    drop_oldest_calls,
    text_or_empty,
)

OPENCODE_QUERY: Final = """
SELECT s.id, s.directory, s.parent_id, p.id, m.data, p.data, p.time_created
FROM session s JOIN message m ON m.session_id = s.id JOIN part p ON p.message_id = m.id
ORDER BY s.time_created, s.id, m.time_created, m.id, p.id
"""
GOOSE_QUERY: Final = """
SELECT s.id, s.working_dir, m.message_id, m.id, m.role, m.content_json, m.created_timestamp,
       m.metadata_json
FROM sessions s JOIN messages m ON m.session_id = s.id ORDER BY s.id, m.id
"""
"""A message keeps its id as Goose compacts a session, and all get other numbers."""
OLD_GOOSE_QUERY: Final = """
SELECT s.id, s.working_dir, NULL, m.id, m.role, m.content_json, m.created_timestamp, NULL
FROM sessions s JOIN messages m ON m.session_id = s.id ORDER BY s.id, m.id
"""


def read_opencode(lines: TranscriptLines, project: str | None) -> Iterator[SessionTurn]:
    """The turns of OpenCode and Kilo; a session that another began is one of a sub-agent."""
    path = lines.skip()
    projects: dict[str, str] = {}
    for session_id, folder, parent, part_id, message, part, at in _query(path, OPENCODE_QUERY):
        name = project or projects.setdefault(str(folder), project_of_folder(str(folder)))
        agent = f"{path.stem}/sub/subagent" if parent else path.stem
        turn = _opencode_turn(str(part_id), _object(message), _object(part), parse_epoch(at))
        if turn is not None:
            yield TranscriptSession(agent, str(session_id), name), turn


def _opencode_turn(
    part_id: str, message: dict[str, Any], part: dict[str, Any], at: datetime | None
) -> ParsedTurn | None:
    kind, state = text_or_empty(part.get("type")), part.get("state")
    if kind == "text" and not part.get("synthetic") and not part.get("ignored"):
        text = text_or_empty(part.get("text")).strip()
        role = "user" if message.get("role") == "user" else "assistant"
        return ParsedTurn(part_id, role, text, at) if text else None  # type: ignore[arg-type]
    if kind != "tool" or not isinstance(state, dict):
        return None
    if text_or_empty(state.get("status")) not in {"completed", "error"}:
        return None
    exit_code = dict_or_empty(state.get("metadata")).get("exit")
    output = text_or_empty(state.get("output")) or text_or_empty(state.get("error"))
    content = format_tool_call(
        rename_arguments(dict_or_empty(state.get("input"))),
        f"Exit code {exit_code}\n{output}" if exit_code else output,
        state["status"] == "error",
    )
    call = text_or_empty(part.get("callID")) or part_id
    return ParsedTurn(call, "tool", content, at, str(part.get("tool") or "tool"))


def read_goose(lines: TranscriptLines, project: str | None) -> Iterator[SessionTurn]:
    """The turns of Goose: `sessions.db`, or an older file of lines that begins with the session."""
    if lines.path.suffix == ".jsonl":
        yield from _read_goose_lines(lines, project)
        return
    calls: dict[str, dict[str, Any]] = {}
    path = lines.skip()
    columns = {column[1] for column in _query(path, "PRAGMA table_info(messages)")}
    is_new = {"message_id", "metadata_json"} <= columns
    rows = _query(path, GOOSE_QUERY if is_new else OLD_GOOSE_QUERY)
    for session_id, folder, message_id, number, role, content, at, metadata in rows:
        # A summary of what was said before is for the model alone.
        if _object(metadata).get("userVisible") is False:
            continue
        name = project or project_of_folder(non_blank_text(folder))
        session = TranscriptSession("goose", str(session_id), name)
        external_id = non_blank_text(message_id) or f"message-{number}"
        blocks = dict_items(_decode(content))
        for turn in _goose_turns(blocks, str(role), external_id, parse_epoch(at), calls):
            yield session, turn


def _read_goose_lines(lines: TranscriptLines, project: str | None) -> Iterator[SessionTurn]:
    name, calls = project or "", dict[str, dict[str, Any]]()
    for entry in lines.json_entries():
        name = name or project_of_folder(non_blank_text(entry.get("working_dir")))
        session = TranscriptSession("goose", lines.path.stem, name)
        blocks, external_id = dict_items(entry.get("content")), f"line-{lines.line_number:06d}"
        role, at = text_or_empty(entry.get("role")), parse_epoch(entry.get("created"))
        for turn in _goose_turns(blocks, role, external_id, at, calls):
            yield session, turn


def _goose_turns(
    blocks: list[dict[str, Any]],
    role: str,
    external_id: str,
    at: datetime | None,
    calls: dict[str, dict[str, Any]],
) -> Iterator[ParsedTurn]:
    """The turns of one message; a call waits in `calls` for the message with its result."""
    text = extract_text(blocks).strip()
    if text and role in {"user", "assistant"}:
        yield ParsedTurn(external_id, role, text, at)  # type: ignore[arg-type]
    for block in blocks:
        kind, call_id = text_or_empty(block.get("type")), text_or_empty(block.get("id"))
        value = dict_or_empty(block.get("toolCall")).get("value")
        if kind == "toolRequest" and isinstance(value, dict):
            calls[call_id] = value
            drop_oldest_calls(calls)
        elif kind == "toolResponse" and call_id in calls:
            call, result = calls.pop(call_id), dict_or_empty(block.get("toolResult"))
            arguments = rename_arguments(dict_or_empty(call.get("arguments")))
            failed = result.get("status") == "error"
            value = result.get("value")
            content = value.get("content") if isinstance(value, dict) else value
            output = extract_text(content) or (str(result.get("error")) if failed else "")
            body = format_tool_call(arguments, output, failed)
            yield ParsedTurn(call_id, "tool", body, at, str(call.get("name") or "tool"))


def is_conversation_database(path: Path) -> bool:
    """Whether the file's name is one of those that agents give their databases."""
    return path.name in {"opencode.db", "kilo.db", "sessions.db"}


def _query(path: Path, query: str) -> Iterator[tuple[Any, ...]]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            yield from database.execute(query)
    except sqlite3.Error:
        return


def _object(text: object) -> dict[str, Any]:
    return dict_or_empty(_decode(text))


def _decode(text: object) -> Any:
    try:
        return json.loads(str(text))
    except (ValueError, RecursionError):
        return None
