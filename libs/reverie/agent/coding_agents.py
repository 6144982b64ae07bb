"""One record for each coding agent: its hook events, its payloads, its answers, its transcripts.

A further agent is one more record here, and its files in `setup.agents`. A hook waits for this
module, so it imports only light modules of the standard library.
"""

from __future__ import annotations

import os

from reverie.contracts.host_system import is_macos

# Not imported from `typing`, which is slow to import: a hook starts at every turn.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

GEMINI_EVENTS = {
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "AfterAgent": "Stop",
    "PreCompress": "PreCompact",
}
CURSOR_EVENTS = {
    "sessionStart": "SessionStart",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "postToolUse": "PostToolUse",
    "postToolUseFailure": "PostToolUse",
    "afterAgentResponse": "Stop",
    "preCompact": "PreCompact",
    "sessionEnd": "SessionEnd",
}
WINDSURF_EVENTS = {
    "pre_user_prompt": "UserPromptSubmit",
    "post_write_code": "PostToolUse",
    "post_run_command": "PostToolUse",
    "post_mcp_tool_use": "PostToolUse",
    "post_cascade_response": "Stop",
}
CLINE_EVENTS = {
    "TaskStart": "SessionStart",
    "TaskResume": "SessionStart",
    "UserPromptSubmit": "UserPromptSubmit",
    "PreToolUse": "PreToolUse",
    "PostToolUse": "PostToolUse",
    "PreCompact": "PreCompact",
    "TaskComplete": "Stop",
    "TaskCancel": "SessionEnd",
}
GOOSE_EVENTS = {"PostToolUseFailure": "PostToolUse"}
_ALL_EVENTS = frozenset(
    {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"}
)


class CodingAgent:
    """How a coding agent names its events and fields, and where it keeps conversations.

    `events`: its name of an event, and ours; names that are the same are left out.
    `fields`: our field of a payload, and the paths in its payload that may hold it.
    `tools`: the tool that an event stands for, where its payload names none.
    `shows`: our events whose answer the model gets to read; for others nothing is asked.
    `answer`: the field of its answer that takes the text, empty for Claude Code's shape;
    `answer_with`: what its answer says besides; without it, Claude Code's shape asks for silence.
    `transcripts`: folders and files of its conversations: `{home}` is the person's home,
    `{config}` the folder of settings on this system, `{clone}` the project.
    `reads_transcript`: whether hooks take turns from its transcript, not from their payloads.
    `follows`: whether it has no hooks, so that its transcripts are followed.
    """

    def __init__(
        self,
        *,
        events: Mapping[str, str] | None = None,
        fields: Mapping[str, Sequence[str]] | None = None,
        tools: Mapping[str, str] | None = None,
        shows: frozenset[str] = _ALL_EVENTS,
        answer: str = "",
        answer_with: Mapping[str, Any] | None = None,
        transcripts: Sequence[str] = (),
        reads_transcript: bool = False,
        follows: bool = False,
    ) -> None:
        self.events = events or {}
        self.fields = fields or {}
        self.tools = tools or {}
        self.shows = shows
        self.answer = answer
        quiet = {} if answer else {"suppressOutput": True}
        self.answer_with = quiet if answer_with is None else answer_with
        self.transcripts = transcripts
        self.reads_transcript = reads_transcript
        self.follows = follows


_VSCODE_TASKS = "{config}/%s/User/globalStorage/%s/tasks"
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")


def _task_folders(publisher: str) -> list[str]:
    """Where an extension keeps its tasks, in each editor that runs it."""
    return [_VSCODE_TASKS % (editor, publisher) for editor in _EDITORS]


CODING_AGENTS: Mapping[str, CodingAgent] = {
    "claude-code": CodingAgent(transcripts=["{home}/.claude/projects"], reads_transcript=True),
    # Codex refuses the whole answer where it does not know a field.
    "codex": CodingAgent(answer_with={}, transcripts=["{home}/.codex/sessions"]),
    "gemini-cli": CodingAgent(events=GEMINI_EVENTS, transcripts=["{home}/.gemini/tmp"]),
    "cursor": CodingAgent(
        events=CURSOR_EVENTS,
        fields={
            "session_id": ("conversation_id", "session_id"),
            "cwd": ("cwd", "workspace_roots.0"),
            "tool_response": ("tool_output",),
            "error": ("error_message",),
            "last_assistant_message": ("text",),
        },
        shows=frozenset({"SessionStart"}),
        answer="additional_context",
        transcripts=["{home}/.cursor/projects"],
    ),
    "windsurf": CodingAgent(
        events=WINDSURF_EVENTS,
        fields={
            "session_id": ("trajectory_id",),
            "prompt": ("tool_info.user_prompt",),
            "last_assistant_message": ("tool_info.response",),
            "tool_name": ("tool_info.mcp_tool_name",),
            "tool_input": ("tool_info.mcp_tool_arguments", "tool_info"),
            "tool_response": ("tool_info.mcp_result",),
        },
        tools={"post_write_code": "write_code", "post_run_command": "run_command"},
        shows=frozenset(),
        transcripts=["{home}/.windsurf/transcripts"],
    ),
    "cline": CodingAgent(
        events=CLINE_EVENTS,
        fields={
            "session_id": ("sessionContext.rootSessionId", "taskId"),
            "cwd": ("workspaceRoots.0",),
            "prompt": ("userPromptSubmit.prompt",),
            "tool_name": ("preToolUse.toolName", "postToolUse.toolName"),
            "tool_input": ("tool_call.input", "preToolUse.parameters", "postToolUse.parameters"),
        },
        answer="contextModification",
        answer_with={"cancel": False},
        transcripts=["{home}/.cline/data/sessions", *_task_folders("saoudrizwan.claude-dev")],
        reads_transcript=True,
    ),
    "goose": CodingAgent(
        events=GOOSE_EVENTS,
        fields={"cwd": ("working_dir",), "prompt": ("message",), "tool_use_id": ("tool_call_id",)},
        shows=frozenset(),
        transcripts=["{home}/.local/share/goose/sessions"],
    ),
    "opencode": CodingAgent(transcripts=["{home}/.local/share/opencode/opencode.db"]),
    "kilo": CodingAgent(
        transcripts=["{home}/.local/share/kilo/kilo.db", *_task_folders("kilocode.kilo-code")]
    ),
    "roo": CodingAgent(transcripts=_task_folders("rooveterinaryinc.roo-cline"), follows=True),
    "aider": CodingAgent(transcripts=["{clone}/.aider.chat.history.md"], follows=True),
}
_OTHER = CodingAgent(events=GEMINI_EVENTS)
"""Of an agent that nobody knows: the names of Claude Code and of Gemini CLI."""
_ARGUMENT_NAMES = {
    "command_line": "command",
    "commands": "command",
    "cmd": "command",
    "filePath": "file_path",
    "target_file": "file_path",
    "absolute_path": "file_path",
}


def find_coding_agent(agent: str) -> CodingAgent:
    """The record of an agent, also of its sub-agents (`cline/sub/x`)."""
    return CODING_AGENTS.get(agent.partition("/")[0], _OTHER)


def config_folder(home: str) -> str:
    """Where programs with windows keep their settings on this system."""
    return os.path.join(home, "Library/Application Support" if is_macos() else ".config")


def transcript_paths(agent: str, home: str, clones: Sequence[str] = ()) -> list[str]:
    """Where the transcripts of an agent are on this machine, whether or not they exist."""
    config = config_folder(home)
    return [
        template.format(home=home, config=config, clone=clone)
        for template in find_coding_agent(agent).transcripts
        for clone in (clones if "{clone}" in template else [""])
    ]


def translate_payload(agent: str, event: str, payload: dict[str, Any]) -> dict[str, Any]:
    """An agent's payload with the names of Claude Code's."""
    record = find_coding_agent(agent)
    translated = dict(payload)
    for name, paths in record.fields.items():
        value = next((found for path in paths if (found := _value_at(payload, path))), None)
        if value is not None:
            translated[name] = value
    if event in record.tools:
        translated.setdefault("tool_name", record.tools[event])
    if isinstance(translated.get("tool_input"), dict):
        translated["tool_input"] = rename_arguments(translated["tool_input"])
    return translated


def rename_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """A tool's arguments, with the names of Claude Code's."""
    renamed = {}
    for name, value in arguments.items():
        known = _ARGUMENT_NAMES.get(name, name)
        if known == "command" and isinstance(value, list):
            value = " && ".join(str(part) for part in value)
        renamed[known] = value
    return renamed


def format_answer(agent: str, event: str, context: str) -> dict[str, Any]:
    """The answer of a hook in the agent's form."""
    record = find_coding_agent(agent)
    if record.answer:
        return {**record.answer_with, record.answer: context}
    specific = {"hookEventName": event, "additionalContext": context}
    return {**record.answer_with, "hookSpecificOutput": specific}


def _value_at(payload: object, path: str) -> object:
    """The value at a path such as `workspace_roots.0`; None if there is none."""
    value = payload
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
