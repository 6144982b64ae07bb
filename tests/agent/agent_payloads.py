"""One short conversation as the hooks of each agent hand it over."""

from __future__ import annotations

import json
from typing import Any

ASKED = "Run the tests, and say why prices are in cents."
TOLD = "Decision: prices stay in cents, because floats lost money."
FOLDER = "/nowhere/shop"


def _cursor(event: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    common = {
        "conversation_id": "c-1",
        "generation_id": "g-1",
        "model": "some-model",
        "hook_event_name": event,
        "cursor_version": "2.4.21",
        "workspace_roots": [FOLDER],
        "user_email": None,
        "transcript_path": None,
    }
    return event, {**common, **fields}


def _windsurf(event: str, **tool_info: Any) -> tuple[str, dict[str, Any]]:
    common = {
        "agent_action_name": event,
        "trajectory_id": "t-1",
        "execution_id": "e-1",
        "timestamp": "2026-03-02T10:00:00Z",
        "model_name": "some-model",
    }
    return event, {**common, "tool_info": tool_info}


def _goose(event: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return event, {"event": event, "session_id": "20260302_1", **fields}


def _plugin(event: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return event, {"session_id": "ses_1", "cwd": FOLDER, **fields}


def _gemini(event: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    common = {"session_id": "g-1", "transcript_path": "/nowhere/session.jsonl", "cwd": FOLDER}
    return event, {**common, "hook_event_name": event, **fields}


_COMMAND = {"command": "pytest -q", "description": "Runs the tests"}

HOOKED: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "cursor": [
        _cursor("beforeSubmitPrompt", prompt=ASKED, attachments=[]),
        _cursor(
            "postToolUse",
            tool_name="Shell",
            tool_input={"command": "pytest -q", "cwd": FOLDER},
            tool_output=json.dumps({"exitCode": 1, "stdout": "2 failed\n"}),
            tool_use_id="call_1",
            duration=212,
        ),
        _cursor("afterAgentResponse", text=TOLD),
    ],
    "windsurf": [
        _windsurf("pre_user_prompt", user_prompt=ASKED),
        _windsurf("post_run_command", command_line="pytest -q", cwd=FOLDER),
        _windsurf("post_cascade_response", response=TOLD),
    ],
    "goose": [
        _goose("UserPromptSubmit", matcher_context=ASKED, message=ASKED),
        _goose(
            "PostToolUse",
            matcher_context="developer__shell",
            tool_name="developer__shell",
            tool_input={"command": "pytest -q"},
            tool_call_id="call_1",
            working_dir=FOLDER,
        ),
        _goose("Stop", last_assistant_message=TOLD),
    ],
    "opencode": [
        _plugin("UserPromptSubmit", prompt=ASKED, message_id="prt_1"),
        _plugin(
            "PostToolUse",
            tool_name="bash",
            tool_input=_COMMAND,
            tool_use_id="call_1",
            tool_response={"output": "2 failed\n", "exit_code": 1},
        ),
        _plugin("Stop", last_assistant_message=TOLD, message_id="prt_3"),
    ],
    "gemini-cli": [
        _gemini("BeforeAgent", prompt=ASKED),
        _gemini(
            "AfterTool",
            tool_name="run_shell_command",
            tool_input=_COMMAND,
            tool_response={"llmContent": "Output: 2 failed\nExit Code: 1"},
        ),
        _gemini("AfterAgent", prompt=ASKED, prompt_response=TOLD),
    ],
    "codex": [
        _gemini("UserPromptSubmit", prompt=ASKED, turn_id="turn-1"),
        _gemini(
            "PostToolUse",
            tool_name="Bash",
            tool_input={"command": "pytest -q"},
            tool_use_id="call_1",
            tool_response="2 failed",
        ),
        _gemini("Stop", last_assistant_message=TOLD, stop_hook_active=False, turn_id="turn-1"),
    ],
}
HOOKED["kilo"] = HOOKED["opencode"]

CLINE_START: dict[str, Any] = {
    "clineVersion": "",
    "timestamp": "2026-03-02T10:00:00.512Z",
    "taskId": "conv_1_t29wdvo",
    "sessionContext": {"rootSessionId": "1772445600272_ihbeb"},
    "workspaceRoots": [FOLDER],
    "workspaceInfo": {"rootPath": FOLDER, "hint": "shop", "latestGitBranchName": "main"},
    "userId": "unknown",
    "agent_id": "agent_1",
    "parent_agent_id": None,
    "hookName": "agent_start",
    "taskStart": {"taskMetadata": {}},
}
