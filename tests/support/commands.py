"""Runs `reverie` commands in the test's process, and hook commands as an agent runs them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from click.testing import CliRunner

from reverie.cli.app.errors import exit_code
from reverie.cli.app.main import app
from reverie.domain.core.errors import ReverieError
from tests.support.stack import Stack


async def command(env: Mapping[str, str], *words: str, given: str = "") -> tuple[int, str, str]:
    """Its exit code, and what it wrote to standard output and standard error.

    `env` comes on top of the environment, and `given` by standard input.
    """
    done = await asyncio.to_thread(CliRunner().invoke, app, [*words], input=given, env=env)
    if isinstance(done.exception, ReverieError):
        return exit_code(done.exception), done.stdout, f"{done.stderr}{done.exception}\n"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def command_environment(stack: Stack, home: Path, key: str, project: str) -> dict[str, str]:
    """Of a command in a process of its own, with nothing else of this process' environment."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "HOME": str(home),
        "REVERIE_HOME": str(home / "reverie"),
        "REVERIE_GATEWAY_URL": stack.url,
        "REVERIE_API_KEY": key,
        "REVERIE_PROJECT": project,
    }


@dataclass
class HookedAgent:
    """A Claude Code session with its transcript; `env` says where Reverie is."""

    folder: Path
    env: dict[str, str]
    session: str = field(default_factory=lambda: str(uuid4()))
    options: tuple[str, ...] = ()

    @property
    def transcript(self) -> Path:
        return self.folder / f"{self.session}.jsonl"

    async def fire(self, event: str, **payload: Any) -> str:
        """What the agent is told: `additionalContext`, or nothing."""
        code, out, err = await self.run(event, json.dumps(self.payload(event, **payload)))
        assert (code, err) == (0, ""), (code, err)
        if not out:
            return ""
        answer = json.loads(out)["hookSpecificOutput"]
        assert answer["hookEventName"] == event
        assert "permissionDecision" not in answer
        return str(answer["additionalContext"])

    def payload(self, event: str, **more: Any) -> dict[str, Any]:
        return {
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(self.folder),
            "permission_mode": "default",
            "hook_event_name": event,
            **more,
        }

    async def run(self, event: str, stdin: str, *words: str) -> tuple[int, str, str]:
        command = (
            sys.executable,
            "-P",
            "-m",
            "reverie.cli.app.entrypoint",
            "hook",
            event,
            *self.options,
        )
        process = await asyncio.create_subprocess_exec(
            *command, "--seconds=20", *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.folder,
            env={**os.environ, **self.env},
        )  # fmt: skip
        out, err = await process.communicate(stdin.encode())
        return process.returncode or 0, out.decode(), err.decode()

    def says(self, role: str, text: str) -> None:
        """A message in the transcript."""
        content: Any = text if role == "user" else [{"type": "text", "text": text}]
        self._entry(role, content)

    def calls(self, tool: str, asked: dict[str, Any], output: str, failed: bool = False) -> str:
        """A tool call and its result in the transcript; the id of the call."""
        call = f"toolu_{uuid4().hex[:20]}"
        use = {"type": "tool_use", "id": call, "name": tool, "input": asked}
        self._entry("assistant", [use])
        result = {"type": "tool_result", "tool_use_id": call, "content": output}
        self._entry("user", [{**result, "is_error": failed}])
        return call

    def _entry(self, role: str, content: Any) -> None:
        entry = {
            "type": role,
            "uuid": str(uuid4()),
            "sessionId": self.session,
            "timestamp": "2026-03-02T10:00:00.000Z",
            "cwd": str(self.folder),
            "isSidechain": False,
            "message": {"role": role, "content": content},
        }
        with self.transcript.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def hooked_agent(stack: Stack, folder: Path, *options: str) -> HookedAgent:
    """An agent at work in a folder named bookshop."""
    work = folder / "bookshop"
    work.mkdir(parents=True)
    env = {"REVERIE_GATEWAY_URL": stack.url, "REVERIE_API_KEY": stack.key, "HOME": str(folder)}
    env["REVERIE_HOME"] = str(folder / "home")
    return HookedAgent(work, env, options=options)
