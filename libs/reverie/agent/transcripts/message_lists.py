"""Reads transcripts that are lists of messages: tasks of Cline, Roo and Kilo, and Cursor's.

A message has a role and blocks, as Anthropic's interface defines them. Where an older task calls
tools by tags in the text, its results are texts that begin with `[tool for 'x'] Result:`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from reverie.agent.coding_agents import rename_arguments
from reverie.agent.transcripts.claude_code import (
    ClaudeCodeParser,
    extract_text,
    format_tool_call,
    remove_elements,
)
from reverie.agent.transcripts.sources import (
    SessionTurn,
    TranscriptLines,
    TranscriptSession,
    dict_items,
    non_blank_text,
    parse_epoch,
    project_of_folder,
    read_sibling,
)
from reverie.agent.transcripts.turns import ParsedTurn, dict_or_empty, text_or_empty

MAX_SLUG_PARTS: Final = 40
_PUBLISHERS: Final = {
    "saoudrizwan.claude-dev": "cline",
    "rooveterinaryinc.roo-cline": "roo",
    "kilocode.kilo-code": "kilo",
}
_ADDED_BY_PROGRAM: Final = re.compile(
    r"<(environment_details|hook_context|user_info|rules|cursor_commands|attached_files"
    r"|open_and_recently_viewed_files|system_reminder|explicit_context)\b[^>\n]{0,300}>"
)
_WRAPPERS: Final = re.compile(
    r"</?(?:user_input|user_query|user_message|task|feedback|answer)(?: [^>\n]{0,100})?>"
)
_RESULT: Final = re.compile(r"\[(\w{1,60})(?: for '([^\n]{0,2000}?)')?\] Result:\s*")
_TAGGED_CALL: Final = re.compile(
    r"<(?:execute_command|read_file|write_to_file|replace_in_file|apply_diff|search_files"
    r"|list_files|list_code_definition_names|use_mcp_tool|insert_content|switch_mode"
    r"|new_task|update_todo_list|browser_action)>"
)
_TAGGED_ANSWER: Final = re.compile(
    r"</?(?:attempt_completion|result|ask_followup_question|question)>"
)
_WORKING_FOLDER: Final = re.compile(
    r"# Current (?:Working|Workspace) Directory \(([^)\n]{1,1000})\) Files"
)
_SPOKEN_TOOLS: Final = {"attempt_completion": "result", "ask_followup_question": "question"}
"""Tools by which an agent speaks, and the argument with what it says."""


class MessageParser:
    """Turns messages into turns, in their order."""

    def __init__(self) -> None:
        self._parser = ClaudeCodeParser()

    def parse(self, message: dict[str, Any], external_id: str) -> Iterator[ParsedTurn]:
        """The turns that a message completes; `external_id` where it has no id of its own."""
        role = text_or_empty(message.get("role"))
        if dict_or_empty(message.get("metadata")).get("displayRole") == "system":
            return
        # Roo writes its summary of what was said before as a message of the user.
        if message.get("isSummary") or message.get("isTruncationMarker"):
            return
        at = parse_epoch(message.get("ts"))
        content = message.get("content")
        text = [{"type": "text", "text": content}]
        blocks = text if isinstance(content, str) else dict_items(content)
        external_id = non_blank_text(message.get("id")) or external_id
        if role == "user":
            yield from _tagged_results(blocks, external_id, at)
        entry = {
            "type": "user" if role == "tool" else role,
            "uuid": external_id,
            "timestamp": at.isoformat() if at else None,
            "message": {"content": [_translate_block(block, role) for block in blocks]},
        }
        yield from self._parser.parse_entry(entry)


def read_task(lines: TranscriptLines, project: str | None) -> Iterator[SessionTurn]:
    """The turns of a task's file: `api_conversation_history.json`, or Cline's `.messages.json`."""
    document = lines.json_document()
    messages = dict_items(document.get("messages") if isinstance(document, dict) else document)
    session, parser = _task_session(lines.path, messages, project), MessageParser()
    for number, message in enumerate(messages):
        for turn in parser.parse(message, f"message-{number:06d}"):
            yield session, turn


def read_cursor(lines: TranscriptLines, project: str | None) -> Iterator[SessionTurn]:
    """The turns of a transcript of Cursor, which keeps no times and no results of tools."""
    name = project or project_of_folder(_folder_of_slug(lines.path))
    session, parser = TranscriptSession("cursor", lines.path.stem, name), MessageParser()
    for entry in lines.json_entries():
        message = entry.get("message")
        if isinstance(message, dict):
            message = {"role": entry.get("role"), "content": message.get("content")}
            for turn in parser.parse(message, f"line-{lines.line_number:06d}"):
                yield session, turn


def _translate_block(block: dict[str, Any], role: str) -> dict[str, Any]:
    """A block as Claude Code writes it."""
    block = _translate_part(block)
    kind, name = text_or_empty(block.get("type")), text_or_empty(block.get("name"))
    if kind == "text":
        text = text_or_empty(block.get("text"))
        return {
            "type": "text",
            "text": _clean_user_text(text) if role == "user" else _clean_assistant_text(text),
        }
    arguments = block.get("input")
    if kind == "tool_use" and isinstance(arguments, dict):
        if name in _SPOKEN_TOOLS:
            return {"type": "text", "text": text_or_empty(arguments.get(_SPOKEN_TOOLS[name]))}
        return {**block, "input": rename_arguments(arguments)}
    if kind == "tool_result":
        return {**block, "content": _result_text(block.get("content"))}
    return block


def _translate_part(part: dict[str, Any]) -> dict[str, Any]:
    """A part of a message of the AI SDK, in which newer versions of Roo keep calls and results."""
    kind, call = text_or_empty(part.get("type")), part.get("toolCallId")
    if kind == "tool-call":
        return {
            "type": "tool_use",
            "id": call,
            "name": part.get("toolName"),
            "input": part.get("input"),
        }
    if kind != "tool-result":
        return part
    output = part.get("output")
    value = output.get("value") if isinstance(output, dict) else output
    text = value if isinstance(value, str) else extract_text(value) or json.dumps(value)
    failed = isinstance(output, dict) and text_or_empty(output.get("type")).startswith("error")
    failed = failed or text.lstrip().startswith("[ERROR]")
    return {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": failed}


def _clean_user_text(text: str) -> str:
    """The user's own text, without the tags of the program; empty for a tool's result."""
    if _RESULT.match(text):
        return ""
    return _WRAPPERS.sub("", remove_elements(text, _ADDED_BY_PROGRAM)).strip()


def _clean_assistant_text(text: str) -> str:
    """What an agent told, without the calls of tools in it."""
    call = _TAGGED_CALL.search(text)
    return _TAGGED_ANSWER.sub("", text[: call.start()] if call else text).strip()


def _tagged_results(
    blocks: list[dict[str, Any]], external_id: str, at: datetime | None
) -> Iterator[ParsedTurn]:
    """The results of tools among the texts of a message; the next text may hold the output."""
    texts = [text_or_empty(block.get("text")) for block in blocks]
    for number, text in enumerate(texts):
        match = _RESULT.match(text)
        if match is None or match[1] in _SPOKEN_TOOLS:
            continue
        output = text[match.end() :].strip()
        following = texts[number + 1] if number + 1 < len(texts) else ""
        if not output and not _ADDED_BY_PROGRAM.match(following):
            output = following
            blocks[number + 1]["text"] = ""
        name = "command" if "command" in match[1] else "path"
        content = format_tool_call({name: match[2] or ""}, output, failed=False)
        yield ParsedTurn(f"{external_id}.{number}", "tool", content, at, match[1])


def _result_text(content: object) -> str:
    """The text of a tool's result, also where it is a list of results."""
    if text := extract_text(content):
        return text
    results = content if isinstance(content, list) else [content]
    texts = [
        text_or_empty(result.get("result")) or text_or_empty(result.get("error"))
        for result in results
        if isinstance(result, dict)
    ]
    return "\n".join(filter(None, texts))


def _task_session(
    path: Path, messages: list[dict[str, Any]], project: str | None
) -> TranscriptSession:
    agent = next((name for key, name in _PUBLISHERS.items() if key in path.parts), "cline")
    is_cline = path.name.endswith(".messages.json")
    session_id = path.name.removesuffix(".messages.json") if is_cline else path.parent.name
    facts = read_sibling(path.with_name(f"{session_id}.json")) if is_cline else {}
    git = dict_or_empty(dict_or_empty(facts.get("metadata")).get("git"))
    branch = non_blank_text(git.get("branch"))
    folder = non_blank_text(facts.get("cwd")) or _folder_in_messages(messages)
    return TranscriptSession(agent, session_id, project or project_of_folder(folder), branch)


def _folder_in_messages(messages: list[dict[str, Any]]) -> str | None:
    """The working folder that the first message names."""
    first = json.dumps(messages[0].get("content"), ensure_ascii=False) if messages else ""
    match = _WORKING_FOLDER.search(first)
    return match[1] if match else None


def _folder_of_slug(path: Path) -> str | None:
    """The folder that a path like `.cursor/projects/home-me-shop/...` stands for, if it exists.

    The name has a dash for each slash and other mark, so folders that exist decide.
    """
    parts = path.absolute().parts
    if "projects" not in parts[:-1]:
        return None
    words = parts[parts.index("projects") + 1].split("-")[:MAX_SLUG_PARTS]
    folder = Path("/")
    while words:
        names = {re.sub(r"[^A-Za-z0-9]", "-", name): name for name in _folder_names(folder)}
        fits = (length for length in range(len(words), 0, -1) if "-".join(words[:length]) in names)
        length = next(fits, 0)
        if not length:
            return None
        folder, words = folder / names["-".join(words[:length])], words[length:]
    return str(folder)


def _folder_names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder) if entry.is_dir()]
    except OSError:
        return []
