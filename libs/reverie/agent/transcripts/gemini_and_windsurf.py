"""Reads the conversations of Gemini CLI and Windsurf: lines of JSON with a type each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from reverie.agent.coding_agents import rename_arguments
from reverie.agent.transcripts.claude_code import format_tool_call, parse_timestamp
from reverie.agent.transcripts.sources import (
    SessionTurn,
    TranscriptLines,
    TranscriptSession,
    dict_items,
    is_plain_file,
    non_blank_text,
    project_of_folder,
)
from reverie.agent.transcripts.turns import ParsedTurn, dict_or_empty, text_or_empty

MAX_ROOT_CHARS: Final = 4_000
_SESSION_CONTEXT: Final = "<session_context>"
_FAILED_STATES: Final = {"error", "cancelled"}


def read_gemini_cli(lines: TranscriptLines, project: str | None) -> Iterator[SessionTurn]:
    """The turns of `chats/session-*.jsonl`, or of the older `session-*.json`.

    A message is written again when its tools are done; what was given once is not given again.
    """
    name = project or project_of_folder(_gemini_folder(lines.path))
    entries: Iterable[dict[str, Any]]
    if lines.path.suffix == ".json":
        document = lines.json_document()
        is_chat = isinstance(document, dict)
        entries = [document, *dict_items(document.get("messages"))] if is_chat else []
    else:
        entries = lines.json_entries()
    session: TranscriptSession | None = None
    given = set[str]()
    for entry in entries:
        session_id = non_blank_text(entry.get("sessionId"))
        if session_id and session is None:
            session = TranscriptSession("gemini-cli", session_id, name)
        if session is not None:
            for turn in _gemini_turns(entry):
                if turn.external_id not in given:
                    given.add(turn.external_id)
                    yield session, turn


def _gemini_turns(entry: dict[str, Any]) -> Iterator[ParsedTurn]:
    kind, external_id = text_or_empty(entry.get("type")), text_or_empty(entry.get("id"))
    if kind not in {"user", "gemini"} or not external_id:
        return
    at, text = parse_timestamp(entry.get("timestamp")), _gemini_text(entry.get("content"))
    if text and not text.startswith(_SESSION_CONTEXT):
        yield ParsedTurn(external_id, "user" if kind == "user" else "assistant", text, at)
    for call in dict_items(entry.get("toolCalls")):
        if isinstance(call.get("id"), str) and call.get("result"):
            content = format_tool_call(
                rename_arguments(dict_or_empty(call.get("args"))),
                _gemini_output(call),
                text_or_empty(call.get("status")) in _FAILED_STATES,
            )
            called_at = parse_timestamp(call.get("timestamp")) or at
            yield ParsedTurn(call["id"], "tool", content, called_at, str(call.get("name")))


def _gemini_output(call: dict[str, Any]) -> str:
    """What a tool answered the model, which includes the exit code."""
    texts = []
    for part in dict_items(call["result"]):
        body = dict_or_empty(dict_or_empty(part.get("functionResponse")).get("response"))
        texts.append(text_or_empty(body.get("output")) or text_or_empty(body.get("error")))
    output = "\n".join(filter(None, texts)) or text_or_empty(call.get("resultDisplay"))
    return output.replace("<untrusted_context>", "").replace("</untrusted_context>", "").strip()


def _gemini_text(content: object) -> str:
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "\n\n".join(text for text in texts if isinstance(text, str)).strip()


def _gemini_folder(path: Path) -> str | None:
    """The project's folder, which a file beside the folder of chats names."""
    root = path.parent.parent / ".project_root"
    if not is_plain_file(root):
        return None
    with root.open(encoding="utf-8", errors="replace") as file:
        return file.read(MAX_ROOT_CHARS).strip() or None


def read_windsurf(lines: TranscriptLines, project: str | None) -> Iterator[SessionTurn]:
    """The turns of a transcript of Cascade: one step a line, without times."""
    session = TranscriptSession("windsurf", lines.path.stem, project or "home")
    for entry in lines.json_entries():
        kind = text_or_empty(entry.get("type"))
        step = entry.get(kind)
        if not isinstance(step, dict):
            continue
        external_id = f"line-{lines.line_number:06d}"
        if kind == "user_input" and (text := text_or_empty(step.get("user_response")).strip()):
            yield session, ParsedTurn(external_id, "user", text)
        elif kind == "planner_response" and (text := text_or_empty(step.get("response")).strip()):
            yield session, ParsedTurn(external_id, "assistant", text)
        elif kind in {"run_command", "code_action", "mcp_tool"}:
            yield session, ParsedTurn(external_id, "tool", _windsurf_call(step), tool=kind)


def _windsurf_call(step: dict[str, Any]) -> str:
    output = text_or_empty(step.get("output")) or text_or_empty(step.get("mcp_result"))
    return format_tool_call(rename_arguments(step), output, bool(step.get("exit_code")))
