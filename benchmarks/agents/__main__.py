"""Drives Claude Code, Codex and OpenCode through three sessions, and says what memory did.

    python -m benchmarks.agents
    python -m benchmarks.agents --agent codex --report docs/agents/real-agents.md
    python -m benchmarks.agents --plugins

The agents are installed from the npm registry into `--programs`, and asked for no account: their
model is scripted, on this machine. Each has a home folder and a Reverie of its own.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.agents.programs import PROGRAMS, AgentProgram
from benchmarks.agents.story import StoryResult, StoryStopped, play_story
from benchmarks.support.common import parser, show

COLUMNS = ("agent", "version", "handed over", "digested", "recalled", "warned", "silent")
REPORT = """\
# Real agents

`make agents` installs these agents, and drives each through three sessions against a scripted
model. What reached the model is read from its side. This page is what the command wrote.

1. A decision is made. Its turns are handed over and digested.
2. It is needed in a new session, and a file with a known trap is read and edited.
3. A question of another project is asked.

{table}

- *recalled*: how often the first request of the second session holds the decision.
- *warned*: when the model was first given the warning of the trap.
- *silent*: the third session was given no memory.
"""


def main() -> int:
    """Returns 1 if an agent did not get to the end of the story."""
    arguments = parser(__doc__)
    names = [program.name for program in PROGRAMS]
    arguments.add_argument("--agent", action="append", choices=names, help="default: all")
    arguments.add_argument(
        "--programs", type=Path, default=Path(".venv/agents"), help="where agents are installed"
    )
    arguments.add_argument("--report", type=Path, help="a Markdown file to write")
    arguments.add_argument(
        "--plugins", action="store_true", help="install Reverie by the agents' own commands"
    )
    given = arguments.parse_args()
    chosen = [each for each in PROGRAMS if each.name in (given.agent or names)]
    chosen = [each for each in chosen if each.plugin or not given.plugins]
    programs = given.programs.resolve()
    results = [_try(program, programs, given.plugins) for program in chosen]
    rows = [_row(result) for result in results]
    show("Three sessions with each agent", COLUMNS, rows)
    for result in results:
        if result.stopped:
            print(f"{result.agent} stopped: {result.stopped}")
    if given.report:
        given.report.write_text(REPORT.format(table=_table(rows)))
    return int(any(result.stopped for result in results))


def _try(program: AgentProgram, programs: Path, uses_plugin: bool) -> StoryResult:
    print(f"{program.name}: installing and playing ...", file=sys.stderr, flush=True)
    try:
        _install(program, programs)
        with tempfile.TemporaryDirectory(prefix="agents-", ignore_cleanup_errors=True) as folder:
            home = Path(folder).resolve()
            return asyncio.run(play_story(program, programs, home, uses_plugin))
    except StoryStopped as error:
        return StoryResult(program.name, stopped=str(error))


def _install(program: AgentProgram, programs: Path) -> None:
    """Installs the agent's package, unless that version is there."""
    npm = shutil.which("npm")
    if npm is None:
        raise StoryStopped("it is not installed: npm was not found")
    words = [npm, "install", "--prefix", str(programs), "--no-audit", "--no-fund", "--silent"]
    done = subprocess.run([*words, program.package], capture_output=True, text=True, check=False)
    if done.returncode:
        raise StoryStopped(f"npm did not install {program.package}: {done.stderr.strip()[-200:]}")


def _row(result: StoryResult) -> Sequence[str]:
    return (
        result.agent,
        result.version.split(" (")[0].removeprefix("codex-cli "),
        f"{result.handed_over} turns",
        "yes" if result.digested else "no",
        "once" if result.recalled == 1 else f"{result.recalled} times",
        result.warned or "no",
        "yes" if result.silent else "no",
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = [COLUMNS, tuple("---" for _ in COLUMNS), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())
