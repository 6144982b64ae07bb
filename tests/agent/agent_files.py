"""One short conversation as each agent stores it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.agent.agent_payloads import ASKED, FOLDER, TOLD
from tests.agent.transcript_samples import lines

OUTPUT = "[Command exited with code 1]\n2 failed\n"


def _message(role: str, *content: dict[str, Any] | str, **fields: Any) -> dict[str, Any]:
    """A message of blocks; a string is a block of text."""
    blocks = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    return {"role": role, "content": blocks, **fields}


_CALL = {
    "type": "tool_use",
    "id": "call_1",
    "name": "run_commands",
    "input": {"commands": ["pytest -q"]},
}
_RESULT = {
    "type": "tool_result",
    "tool_use_id": "call_1",
    "name": "run_commands",
    "content": [{"query": "pytest -q", "result": OUTPUT, "success": False}],
}
_FROM_A_HOOK = {"userRunSpan": 0, "displayRole": "system"}
_ADDED = '<hook_context source="PreToolUse">x</hook_context>'
CLINE_MESSAGES = [
    _message("user", f'<user_input mode="act">{ASKED}</user_input>', id="m1", ts=1772445619506),
    _message("assistant", _CALL, id="m2", ts=1772445619838),
    _message("user", _RESULT, id="m3", ts=1772445620145),
    _message("user", _ADDED, id="m4", ts=1772445620148, metadata=_FROM_A_HOOK),
    _message("assistant", TOLD, id="m5", ts=1772445620274),
]
_ENVIRONMENT = (
    f"<environment_details>\n# Current Workspace Directory ({FOLDER}) Files\nprice.py\n"
    "</environment_details>"
)
_BY_TAGS = "<execute_command>\n<command>pytest -q</command>\n</execute_command>"
_ENDED = f"<attempt_completion>\n<result>\n{TOLD}\n</result>\n</attempt_completion>"
_PRINTED = f"[execute_command for 'pytest -q'] Result:\n{OUTPUT}"
ROO_TASK = [
    _message("user", f"<task>\n{ASKED}\n</task>", _ENVIRONMENT, ts=1772445600000),
    _message("assistant", _BY_TAGS, ts=1772445601000),
    _message("user", _PRINTED, _ENVIRONMENT, ts=1772445602000),
    _message("assistant", _ENDED, ts=1772445603000),
]


def write_cline(home: Path) -> Path:
    """A task of Cline's command line."""
    folder = home / ".cline/data/sessions/1772445600272_ihbeb"
    folder.mkdir(parents=True)
    facts = {"cwd": FOLDER, "metadata": {"git": {"branch": "main"}}}
    (folder / "1772445600272_ihbeb.json").write_text(json.dumps(facts))
    path = folder / "1772445600272_ihbeb.messages.json"
    path.write_text(json.dumps({"version": 1, "messages": CLINE_MESSAGES}))
    return path


def write_roo(home: Path) -> Path:
    """A task of Roo Code, which calls its tools by tags."""
    storage = home / ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline"
    path = storage / "tasks/7a1f/api_conversation_history.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(ROO_TASK))
    return path


def write_cursor(home: Path) -> Path:
    """A transcript of Cursor; its folder does not exist here."""
    path = home / ".cursor/projects/nowhere-shop/agent-transcripts/c-1/c-1.jsonl"
    path.parent.mkdir(parents=True)
    query = f"<user_query>\n{ASKED}\n</user_query>"
    call = {"type": "tool_use", "name": "Shell", "input": {"command": "pytest -q"}}
    entries: list[dict[str, Any]] = [
        {"role": "user", "message": {"content": [{"type": "text", "text": query}]}},
        {"role": "assistant", "message": {"content": [call]}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": TOLD}]}},
    ]
    path.write_text(lines(entries))
    return path


def write_windsurf(home: Path) -> Path:
    """A transcript that Cascade writes where it is asked to."""
    path = home / ".windsurf/transcripts/t-1.jsonl"
    path.parent.mkdir(parents=True)
    command = {"command_line": "pytest -q", "output": "2 failed", "exit_code": 1}
    entries: list[dict[str, Any]] = [
        {"status": "done", "type": "user_input", "user_input": {"user_response": ASKED}},
        {"status": "done", "type": "run_command", "run_command": command},
        {"status": "done", "type": "planner_response", "planner_response": {"response": TOLD}},
    ]
    path.write_text(lines(entries))
    return path


def write_gemini(home: Path) -> Path:
    """A chat of Gemini CLI: a message is written anew when its tools are done."""
    path = home / ".gemini/tmp/shop/chats/session-2026-03-02T10-00-1b125573.jsonl"
    path.parent.mkdir(parents=True)
    (path.parent.parent / ".project_root").write_text(FOLDER)
    moment = {"timestamp": "2026-03-02T10:00:00.744Z"}
    answer = {"id": "m2", **moment, "type": "gemini", "content": "I run them.", "thoughts": []}
    response = {"output": "<untrusted_context>\nOutput: 2 failed\n</untrusted_context>"}
    call = {
        "id": "call_1",
        "name": "run_shell_command",
        "args": {"command": "pytest -q"},
        "result": [{"functionResponse": {"id": "call_1", "response": response}}],
        "status": "success",
        **moment,
    }
    greeting = [{"text": "<session_context>\nThis is the Gemini CLI.\n</session_context>"}]
    entries: list[dict[str, Any]] = [
        {"sessionId": "1b125573", "projectHash": "0e09", "kind": "main"},
        {"$set": {"messages": [{"id": "m0", **moment, "type": "user", "content": greeting}]}},
        {"id": "m1", **moment, "type": "user", "content": [{"text": ASKED}]},
        answer,
        {**answer, "toolCalls": [call]},
        {"id": "m3", **moment, "type": "user", "content": [{"functionResponse": {}}]},
        {"id": "m4", **moment, "type": "gemini", "content": TOLD},
    ]
    path.write_text(lines(entries))
    return path


def write_opencode(home: Path, name: str = "opencode") -> Path:
    """The database of OpenCode, with the tables that hold what was said."""
    path = home / f".local/share/{name}/{name}.db"
    path.parent.mkdir(parents=True)
    state = {
        "status": "completed",
        "input": {"command": "pytest -q"},
        "output": "2 failed\n",
        "metadata": {"exit": 1},
    }
    call = {"type": "tool", "tool": "bash", "callID": "call_1", "state": state}
    parts: list[tuple[str, str, dict[str, Any]]] = [
        ("prt_1", "msg_1", {"type": "text", "text": ASKED}),
        ("prt_1m", "msg_1", {"type": "text", "text": "<reverie-memory>", "synthetic": True}),
        ("prt_2", "msg_2", call),
        ("prt_3", "msg_2", {"type": "text", "text": TOLD}),
    ]
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE session (id text, parent_id text, directory text, time_created integer);"
            "CREATE TABLE message (id text, session_id text, time_created integer, data text);"
            "CREATE TABLE part (id text, message_id text, time_created integer, data text);"
        )
        database.execute("INSERT INTO session VALUES ('ses_1', NULL, ?, 1)", [FOLDER])
        for number, role in ((1, "user"), (2, "assistant")):
            row = (f"msg_{number}", number, json.dumps({"role": role}))
            database.execute("INSERT INTO message VALUES (?, 'ses_1', ?, ?)", row)
        for part_id, message, part in parts:
            row_of_part = (part_id, message, json.dumps(part))
            database.execute("INSERT INTO part VALUES (?, ?, 1772445600000, ?)", row_of_part)
        database.commit()
    return path


def write_kilo(home: Path) -> Path:
    """The database of Kilo, which is OpenCode's under another name."""
    return write_opencode(home, "kilo")


def _goose_tool(kind: str, field: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "id": "call_1", field: {"status": "success", "value": value}}


_GOOSE_CALL = {"name": "developer__shell", "arguments": {"command": "pytest -q"}}
_GOOSE_RESULT = {"content": [{"type": "text", "text": "2 failed"}]}
_GOOSE = [
    _message("user", ASKED),
    _message("assistant", _goose_tool("toolRequest", "toolCall", _GOOSE_CALL)),
    _message("user", _goose_tool("toolResponse", "toolResult", _GOOSE_RESULT)),
    _message("assistant", TOLD),
]


def write_goose(home: Path) -> Path:
    """The database of Goose."""
    path = home / ".local/share/goose/sessions/sessions.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE sessions (id text, working_dir text);"
            "CREATE TABLE messages (id integer primary key, session_id text, role text,"
            " content_json text, created_timestamp integer);"
        )
        database.execute("INSERT INTO sessions VALUES ('20260302_1', ?)", [FOLDER])
        for message in _GOOSE:
            database.execute(
                "INSERT INTO messages (session_id, role, content_json, created_timestamp)"
                " VALUES ('20260302_1', ?, ?, 1772445600)",
                [message["role"], json.dumps(message["content"])],
            )
        database.commit()
    return path


def write_old_goose(home: Path) -> Path:
    """A session of Goose before it had a database."""
    path = home / ".local/share/goose/sessions/20250302_100000.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"working_dir": FOLDER, "description": "Prices", "message_count": 4}
    messages = [{**message, "created": 1772445600} for message in _GOOSE]
    path.write_text(lines([head, *messages]))
    return path


WRITERS: dict[str, Callable[[Path], Path]] = {
    "cline": write_cline,
    "roo": write_roo,
    "cursor": write_cursor,
    "windsurf": write_windsurf,
    "gemini-cli": write_gemini,
    "opencode": write_opencode,
    "kilo": write_kilo,
    "goose": write_goose,
    "old goose": write_old_goose,
}
