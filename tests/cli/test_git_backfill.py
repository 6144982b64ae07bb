"""`reverie git backfill` takes a real history in on running services, once and for all."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reverie.domain.access.principals import KeyRole
from reverie.testing.chaos_proxy import ChaosProxy
from tests.support.commands import command, command_environment
from tests.support.git_clone import Clone, new_clone
from tests.support.proxies import port_of
from tests.support.stack import Stack
from tests.support.tables import rows

COMMITS = 150
INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    " from reverie.cli.app.main import main; main()"
)
"""The command line; in the background of a shell, it would ignore interrupts."""
REASON = "Part {0} is rounded down, because the ledger of part {0} drops half cents."


def environment(stack: Stack, home: Path) -> dict[str, str]:
    return command_environment(stack, home, stack.key_of(role=KeyRole.WRITER), "ledger")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A history with a reason in every tenth commit, and with a merged branch."""
    made = new_clone(tmp_path / "clone")
    stream: list[str] = []
    for number in range(1, COMMITS + 1):
        body = f"\n\n{REASON.format(number)}" if number % 10 == 0 else ""
        message, text = f"Round part {number}{body}", f"part {number}\n"
        when = f"a <a@example.org> {1_700_000_000 + 3600 * number} +0000"
        stream += [
            "commit refs/heads/main", f"committer {when}",
            f"data {len(message.encode())}", message,
            f"M 100644 inline src/part_{number % 7}.py", f"data {len(text)}", text,
        ]  # fmt: skip
    subprocess.run(
        ["git", "fast-import", "--quiet"],
        cwd=made.root,
        check=True,
        input="\n".join(stream).encode(),
    )
    made.git("reset", "-q", "--hard", "main")
    made.git("switch", "-q", "-c", "feat/x")
    made.commit("Keep the sign\n\nThe sign is kept, because refunds are negative.", {"b.py": "b"})
    made.git("switch", "-q", "main")
    made.commit("On main", {"c.py": "c"})
    made.merge("feat/x")
    return made


def memories(stack: Stack) -> list[tuple[Any, ...]]:
    asked = (
        "select key, version, status, content, git -> 'files' from memory m join tenant t"
        " on t.id = m.tenant where t.id = %s and key like 'commit:%%' order by m.id"
    )
    return rows(stack.admin_url, asked, stack.number())


def changes(stack: Stack) -> int:
    asked = "select count(*) from git_event where tenant = %s"
    [(count,)] = rows(stack.admin_url, asked, stack.number())
    return int(count)


async def test_a_history_is_taken_in_once_oldest_first(
    stack: Stack, clone: Clone, tmp_path: Path
) -> None:
    env, run = environment(stack, tmp_path), ("git", "backfill", "-C", str(clone.root))
    code, shown, said = await command(env, *run, "--dry-run")
    assert (code, shown.splitlines()[0]) == (
        0, "ledger main: 16 of 153 commits would leave a memory",
    ), said  # fmt: skip
    assert shown.count("because") == 3
    assert (memories(stack), changes(stack)) == ([], 0)
    code, shown, said = await command(env, *run)
    assert (code, shown.strip()) == (0, "153 commits sent to ledger"), said
    assert "100 of 153 commits" in said
    assert "the project ledger was not known before" in said
    made = memories(stack)
    assert [row[1:3] for row in made] == [(1, "active")] * 16
    assert REASON.format(10) in made[0][3]
    assert made[0][4] == ["src/part_3.py"]
    code, shown, said = await command(env, *run)
    assert (code, shown.strip()) == (0, "0 commits sent to ledger"), said
    clone.commit("Round once\n\nTotals are rounded once, because steps add up.", {"d.py": "d"})
    code, shown, said = await command(env, *run, "--json")
    assert (code, json.loads(shown)["commits"]) == (0, 1), said
    assert (memories(stack)[:16], len(memories(stack))) == (made, 17)
    (clone.root / ".git/reverie/backfill.json").unlink()
    code, shown, _ = await command(env, *run)
    assert (code, shown.strip()) == (0, "154 commits sent to ledger")
    assert (memories(stack)[:16], len(memories(stack))) == (made, 17)


async def test_an_interrupt_says_how_to_go_on_and_nothing_is_stored_twice(
    stack: Stack, clone: Clone, tmp_path: Path
) -> None:
    env, run = environment(stack, tmp_path), ("git", "backfill", "-C", str(clone.root))
    async with ChaosProxy("127.0.0.1", port_of(stack.url)) as proxy:
        env["REVERIE_GATEWAY_URL"] = f"http://127.0.0.1:{proxy.port}"
        # What follows the first batch takes seconds, however late this process reads of it.
        proxy.delay(1.5)
        started = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", INTERRUPTIBLE, *run),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
        )
        assert started.stderr is not None
        assert b"100 of 153" in await started.stderr.readline()
        started.send_signal(signal.SIGINT)
        _, said = await started.communicate()
        assert started.returncode != 0
        assert b"run the command again" in said
        assert b"Traceback" not in said
        proxy.restore()
        code, shown, _ = await command(env, *run)
    assert code == 0
    assert shown.strip() == "53 commits sent to ledger"
    assert [row[1:3] for row in memories(stack)] == [(1, "active")] * 16


async def test_since_max_and_branch_limit_the_history(
    stack: Stack, clone: Clone, tmp_path: Path
) -> None:
    env, run = environment(stack, tmp_path), ("git", "backfill", "-C", str(clone.root), "--json")

    async def counted(*more: str) -> int:
        code, shown, said = await command(env, *run, "--dry-run", *more)
        assert code == 0, said
        return int(json.loads(shown)["commits"])

    assert await counted("--max", "20") == 20
    assert await counted("--since", "2025-06-01") == 3
    assert await counted("--branch", "feat/x") == 151
    code, _, said = await command(env, *run, "--branch", "nowhere")
    assert (code, "no commit nowhere" in said) == (4, True)
