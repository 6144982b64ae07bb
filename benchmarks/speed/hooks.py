"""Measures how long an agent waits for its hooks.

    python -m benchmarks.speed.hooks [--calls N] [--pause SECONDS] [--memories N] [--kept FOLDER]

Each hook is the command that an agent runs, one after another, against a running system with
memories in it. What a hook leaves to a process beside goes on while the next one runs, unless a
pause lets it end: messages of a user are seconds apart, edits may follow at once. The first prompts
are each of a session of its own. The first call of each hook stands apart: the first prompt after a
start finds no recall index in memory, and after 31 s without a call no connections to Postgres.
`--kept` keeps the home that was filled, so that it can be measured again; `--calls 0` only fills.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from benchmarks.speed.prompts import MODULES, PROJECT, fill_project
from benchmarks.support.common import CallTimes, Running, running, show
from benchmarks.support.generated_texts import question


def main() -> None:
    """Prints the table. The aims at p95: 300 ms for a first prompt, 150 ms for a later one and
    before an edit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds before each call")
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--kept", type=Path, help="a folder that keeps what was filled")
    asked = parser.parse_args()
    calls: int = asked.calls
    with running(asked.kept) as system, tempfile.TemporaryDirectory() as folder:
        key = asyncio.run(fill_project(system, asked.memories))
        if not calls:
            return
        agent = Agent(system, key, Path(folder))
        bare = measured([sys.executable, "-c", "pass"], [""] * calls, {}, 0.0)
        rows = [row("python -c pass", bare)]
        rows += [row(name, agent.measured(name, calls, asked.pause)) for name in EVENTS]
    columns = ["", "p50 ms", "p95 ms", "first ms", "processor ms"]
    title = f"Hooks, {calls} calls each, {asked.pause} s between, {asked.memories:,} memories"
    show(title, columns, rows)


def row(name: str, found: tuple[CallTimes, float]) -> list[str]:
    each, processor = found
    milliseconds = each.at(0.5), each.at(0.95), each.each[0] * 1000, processor * 1000
    return [name, *(f"{figure:.0f}" for figure in milliseconds)]


FIRST_PROMPT = "UserPromptSubmit, first of a session"
EVENTS = (
    *("SessionStart", FIRST_PROMPT, "UserPromptSubmit", "PreToolUse", "PostToolUse"),
    *("PreCompact", "SubagentStop", "Stop", "SessionEnd"),
)


class Agent:
    """One session of an agent in a folder; it grows by a message with each call."""

    def __init__(self, system: Running, key: str, folder: Path) -> None:
        self._folder = folder
        self._session = str(uuid4())
        self._env = {
            "REVERIE_HOME": str(system.home),
            "REVERIE_GATEWAY_URL": system.gateway,
            "REVERIE_API_KEY": key,
            "REVERIE_PROJECT": PROJECT,
        }

    def measured(self, name: str, calls: int, pause: float) -> tuple[CallTimes, float]:
        """How long each call took, and the processor time of one, in seconds."""
        event = name.partition(",")[0]
        command = [str(Path(sys.executable).with_name("reverie")), "hook", event]
        inputs = [self._payload(event, n, name == FIRST_PROMPT) for n in range(calls)]
        return measured(command, inputs, self._env, pause)

    def _payload(self, event: str, number: int, opens_session: bool) -> str:
        transcript = self._folder / "session.jsonl"
        said = {"role": "user", "content": f"Message {number} before {event}."}
        entry = {"type": "user", "uuid": str(uuid4()), "message": said}
        with transcript.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        tool = {"file_path": str(self._folder / f"src/module_{number % MODULES}.py")}
        return json.dumps({
            "session_id": str(uuid4()) if opens_session else self._session,
            "transcript_path": str(transcript),
            "cwd": str(self._folder),
            "hook_event_name": event,
            "source": "startup",
            "prompt": question(number),
            "tool_name": "Edit",
            "tool_input": tool,
            "tool_response": {"success": True},
        })  # fmt: skip


def measured(
    command: Sequence[str], inputs: Sequence[str], env: dict[str, str], pause: float
) -> tuple[CallTimes, float]:
    """Runs the command with each input, one after another, `pause` seconds before each."""
    each: list[float] = []
    processor = 0.0
    for text in inputs:
        time.sleep(pause)
        begun = time.perf_counter()
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, **env},
        )
        assert child.stdin is not None
        child.stdin.write(text.encode())
        child.stdin.close()
        _, status, used = os.wait4(child.pid, 0)
        each.append(time.perf_counter() - begun)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0
        processor += used.ru_utime + used.ru_stime
    return CallTimes(each, sum(each)), processor / len(inputs)


if __name__ == "__main__":
    main()
