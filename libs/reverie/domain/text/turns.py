"""Stored session turns, and the condensed form that is stored of a tool call."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

MAX_TARGET = 240
MAX_NOTE = 100
OUTPUT_GAP = "\n[…]\n"

_FENCE = re.compile(r"^[^\S\n]*+(`{3,}|~{3,})[^\n]*$", re.M)
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_UPDATED_FILE = re.compile(
    r"[Ff]ile (?:created successfully at: (?P<made>\S+)"
    r"|(?P<put>\S+) (?:has been )?(?:updated|created))"
)
_LABELS = re.compile(r"(?:\s*(?:path|pattern|glob|type|output|mode|in|file|url)\b:?)*", re.I)
_TARGET_KEYS = ("command", "cmd", "file_path", "path", "notebook_path", "pattern", "query", "url")
_REJECTED = re.compile(r"(?:user|tool use was) (?:doesn't want to|rejected|denied|declined)", re.I)
_USER_REASON = re.compile(
    r"(?:the user said|user provided the following reason)[^:]{0,200}:\s*", re.I
)
_FAILED = re.compile(
    r"^[^\S\n]*+(?:--- FAIL|FAIL\b|FAILED\b|panic:|fatal:|Traceback \(most recent|error:|Error:"
    r"|ERROR\b|npm ERR!|E\s{3}|.*?: command not found|.*?: No such file or directory"
    r"|.*\bExit code:? [1-9]|.*\bexit status [1-9])",
    re.M,
)
_ISSUE_COUNT = re.compile(r"^[^\S\n]*+[1-9]\d* (?:issues?|errors?|failed|failing)\b", re.M)
_ANSWER = re.compile(r"^\*\*Answer:\*\*\s*(.+)$", re.M)
_QUESTION = re.compile(r"^\*\*(.+?\?)\*\*", re.M)
_TOOLS_WITHOUT_EXCERPT = frozenset(
    {"read", "edit", "write", "multiedit", "notebookedit", "glob", "grep", "todowrite", "ls"}
)


@dataclass(frozen=True)
class TurnText:
    """One stored turn: `ordinal` counts from 0 in its session; a tool's content is condensed."""

    id: UUID
    ordinal: int
    role: str
    content: str
    at: datetime
    tool: str | None = None


def truncate_output(text: str, limit: int) -> str:
    """At most `limit` characters of a text, two thirds of its beginning and a third of its end."""
    if len(text) <= limit:
        return text
    available = max(limit - len(OUTPUT_GAP), 0)
    tail = available // 3
    return f"{text[: available - tail]}{OUTPUT_GAP}{text[len(text) - tail :]}"[:limit]


def condense_tool_output(tool: str | None, content: str, limit: int = 600) -> str:
    """Condenses a tool call: one line of tool, target, note and status, then an excerpt.

    The excerpt is at most `limit` characters. It is empty for tools whose output is a file's
    content or a list of matches. A failed command keeps the lines with the reason. A question to
    the user keeps question and answer; a refused call keeps the user's words. Condensing the result
    again changes only the excerpt's length.
    """
    name = (tool or "tool").strip() or "tool"
    if content.startswith(f"{name}: ") and tool_call_status(content):
        head, _, rest = content.partition("\n")
        return "\n".join(filter(None, (head, rest.strip()[:limit].rstrip())))
    head, output = _split_call_output(content)
    status = _detect_status(output or head)
    target, note = _find_target(head, output)
    target, note = _flatten(target, MAX_TARGET), _flatten(note, MAX_NOTE)
    parts = (f"{name}:", target and f"`{target}`", note and f"({note})", f"[{status}]")
    line = " ".join(filter(None, parts))
    excerpt = _build_excerpt(name, head, output, status, limit).strip()[:limit].rstrip()
    return "\n".join(filter(None, (line, excerpt)))


def tool_call_status(content: str) -> str:
    """The status in a condensed call: ok, failed, rejected or answered; empty without one."""
    match = re.match(r"[^\n]* \[(ok|failed|rejected|answered)\](?:\n|$)", content)
    return match[1] if match else ""


def tool_call_target(content: str) -> str:
    """The command or path in a condensed call; empty without one."""
    match = _CODE_SPAN.search(content.partition("\n")[0])
    return match[1] if match else ""


def _split_call_output(content: str) -> tuple[str, str]:
    """The request to the tool and its output."""
    text = content.replace("\x00", "").strip()
    fence = _FENCE.search(text)
    if fence:
        output = text[fence.end() :].strip()
        for mark in "`~":
            if output.endswith(mark * 3):
                output = output.rstrip(mark).rstrip()
                break
        return text[: fence.start()].strip(), output
    if text.startswith("{"):
        return text, ""
    return (text, "") if _CODE_SPAN.search(text[:400]) or _ANSWER.search(text) else ("", text)


def _detect_status(output: str) -> str:
    if _REJECTED.search(output[:400]):
        return "rejected"
    if _ANSWER.search(output):
        return "answered"
    return "failed" if _FAILED.search(output) or _ISSUE_COUNT.search(output) else "ok"


def _find_target(head: str, output: str) -> tuple[str, str]:
    """Returns the command or path of the request, and the note with it."""
    if head.startswith("{"):
        with suppress(ValueError):
            if arguments := json.loads(head):
                values = (arguments.get(key) for key in _TARGET_KEYS)
                target = next((str(value) for value in values if value), "")
                return target, str(arguments.get("description", ""))
    # The file that an output reports as written is last, after its contents.
    targets = _CODE_SPAN.findall(head) or [
        match["made"] or match["put"] for match in _UPDATED_FILE.finditer(output)
    ]
    note = "" if _ANSWER.search(head) else _CODE_SPAN.sub("", head).strip()
    note = "" if _LABELS.fullmatch(note) else note
    return targets[-1] if targets else "", note.splitlines()[0] if note else ""


def _build_excerpt(name: str, head: str, output: str, status: str, limit: int) -> str:
    if status == "answered":
        return _format_answers(head or output)
    if status == "rejected":
        reason = _USER_REASON.search(output)
        return _flatten(output[reason.end() :], limit) if reason else ""
    if name.lower() in _TOOLS_WITHOUT_EXCERPT and status == "ok":
        return ""
    if status == "failed":
        return _failure_lines(output)
    if len(output) <= limit:
        return output
    # Whole lines from the end, because a command reports its result there.
    tail = output[len(output) - limit :]
    return tail.partition("\n")[2] or tail


def _format_answers(text: str) -> str:
    questions, answers = _QUESTION.findall(text), _ANSWER.findall(text)
    replies = answers[0].split(", ") if len(answers) == 1 else answers
    if len(questions) == len(replies):
        return "\n".join(f"{q} → {a}" for q, a in zip(questions, replies, strict=True))
    return f"{' '.join(questions)} → {', '.join(answers)}"


def _failure_lines(output: str) -> str:
    """The lines around the first failures."""
    lines = output.splitlines()
    failed = [i for i, line in enumerate(lines) if _FAILED.match(line) or _ISSUE_COUNT.match(line)]
    selected = sorted({j for i in failed[:5] for j in (i - 1, i, i + 1) if 0 <= j < len(lines)})
    return "\n".join(lines[i].rstrip() for i in selected)


def _flatten(text: str, limit: int) -> str:
    flat = " ".join(text.replace("`", "'").split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"
