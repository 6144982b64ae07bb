"""Which turns hooks skip, what counts as a bug fix, and the imports of a hook."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reverie.agent.git.project_detection import detect_project
from reverie.agent.hooks.bug_fixes import OpenFailures, find_fixes
from reverie.agent.hooks.command import is_command
from reverie.agent.hooks.session_state import HookSessionState
from reverie.agent.hooks.turn_spool import read_spooled_turns, spool_turn
from reverie.agent.transcripts.turn_filter import is_noise, read_new_turns
from reverie.agent.transcripts.turns import ParsedTurn

HEAVY = (
    *("typing", "dataclasses", "asyncio", "pydantic", "click", "rich", "aiohttp", "http"),
    *("email", "urllib", "hashlib", "subprocess", "pathlib", "tempfile", "inspect"),
)


@pytest.mark.parametrize("event", ["Stop", "SessionStart"])
def test_a_hook_imports_almost_nothing(event: str, tmp_path: Path) -> None:
    code = (
        "import sys; own = set(sys.modules); sys.argv = ['reverie', 'hook', sys.argv[1]]\n"
        "from reverie.agent.hooks import delivery; delivery.os.fork = lambda: 1\n"
        "from reverie.cli.app import entrypoint\n"
        "try: entrypoint.main()\n"
        "finally: print(sorted(set(sys.modules) - own))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, event],
        input=json.dumps({"session_id": "one", "cwd": str(tmp_path)}),
        capture_output=True,
        text=True,
        env={"REVERIE_HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "'reverie.agent.hooks.command'" in done.stdout
    assert [one for one in HEAVY if f"'{one}'" in done.stdout] == []
    assert sum("reverie" not in name for name in done.stdout.split(",")) < 36


@pytest.mark.parametrize(
    ("tool", "command", "output", "noise"),
    [
        ("Bash", "ls -la src && pwd", "a\nb", True),
        ("Bash", "cat a.py | head -3", "x", True),
        ("Bash", "ls nowhere", "Error: Exit code 2", False),
        ("Bash", "cd src && pytest -q", "1 passed", False),
        ("Bash", "lsof -i", "", False),
        ("Read", "", "x" * 100, True),
        ("Read", "", "x" * 5000, False),
        ("Edit", "", "updated", False),
        ("mcp__reverie__recall", "", "x", True),
        ("TodoWrite", "", "ok", True),
    ],
)
def test_read_only_tool_calls_are_noise(tool: str, command: str, output: str, noise: bool) -> None:
    assert is_noise(tool, command, output) is noise


def ran(command: str, output: str) -> ParsedTurn:
    content = json.dumps({"command": command}) + f"\n```\n{output}\n```"
    return ParsedTurn(f"call-{output[:5]}", "tool", content, tool="Bash")


def edited(path: str) -> ParsedTurn:
    content = json.dumps({"file_path": path}) + "\n```\nok\n```"
    return ParsedTurn("edit", "tool", content, tool="Edit")


def test_a_fix_is_the_edits_between_a_failure_and_the_next_success() -> None:
    open_: OpenFailures = {}
    failure = ran("make test", "Exit code 2\nimport cart\nE   ImportError: no cart\n1 failed")
    assert find_fixes([failure, ran("make lint", "ok")], open_, "/shop") == []
    (fix,) = find_fixes(
        [edited("/shop/src/cart.py"), ran("make  test", "3 passed")], open_, "/shop"
    )
    assert fix["content"] == (
        "`make test` failed: ImportError: no cart. It passes since src/cart.py changed."
    )
    assert fix["git"] == {"files": ["src/cart.py"]}
    assert open_ == {}
    assert find_fixes([failure, ran("make test", "3 passed")], open_, "/shop") == []
    secret = ran("deploy", "Exit code 1\nerror: token ghp_" + "x7Kd92LmQp4RtVwYz3Bn" * 2)
    find_fixes([secret], open_, "/shop")
    assert "ghp_x7" not in json.dumps(open_)


def test_an_unfinished_tool_call_is_read_again_and_a_torn_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    said = {"type": "user", "uuid": "u1", "message": {"content": "Fix it."}}
    use = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make"}}
    call = {"type": "assistant", "uuid": "a1", "message": {"content": [use]}}
    back = {"type": "tool_result", "tool_use_id": "c1", "content": "built"}
    result = json.dumps({"type": "user", "uuid": "u2", "message": {"content": [back]}})
    path.write_text(f"{json.dumps(said)}\nno json\n{json.dumps(call)}\n{result[:20]}")
    turns, cursor, more = read_new_turns(str(path), 0)
    assert ([turn.external_id for turn in turns], more) == (["u1"], False)
    with path.open("a") as file:
        file.write(f"{result[20:]}\n")
    turns, cursor, _ = read_new_turns(str(path), cursor)
    assert [turn.external_id for turn in turns] == ["c1"]
    assert cursor == path.stat().st_size
    assert read_new_turns(str(path), cursor)[0] == []
    path.write_text(f"{json.dumps(said)}\n")
    assert len(read_new_turns(str(path), cursor)[0]) == 1


def test_a_project_is_named_by_its_git_configuration_files(tmp_path: Path) -> None:
    clone, work = tmp_path / "clone", tmp_path / "work"
    for name, told in (("origin.git", None), ("shop", "shop")):
        config = '[remote "origin"]\n\turl = git@example.com:team/origin.git\n'
        if told:
            config += f"[reverie]\n\tproject = {told}\n"
        (clone / ".git").mkdir(parents=True, exist_ok=True)
        (clone / ".git/config").write_text(config)
        (clone / ".git/HEAD").write_text("ref: refs/heads/feat/login.v2\n")
        (clone / "src").mkdir(exist_ok=True)
        found = detect_project(str(clone / "src"), None, {})
        assert found.project == (told or name.removesuffix(".git"))
        assert (found.root, found.branch) == (str(clone), "feat/login.v2")
    linked = clone / ".git/worktrees/work"
    linked.mkdir(parents=True)
    (linked / "commondir").write_text("../..\n")
    (linked / "HEAD").write_text("0123456789\n")
    work.mkdir()
    (work / ".git").write_text(f"gitdir: {linked}\n")
    assert (
        detect_project(str(work), None, {}).project,
        detect_project(str(work), None, {}).branch,
    ) == ("shop", None)
    assert detect_project(str(work), None, {"REVERIE_PROJECT": "env"}).project == "env"
    assert detect_project(str(work), "named", {"REVERIE_PROJECT": "env"}).project == "named"
    (tmp_path / "plain").mkdir()
    assert detect_project(str(tmp_path / "plain"), None, {}).project == "plain"
    (clone / "reverie.toml").write_text("project = 'whole'\n")
    assert detect_project(str(clone / "src"), None, {}).project == "whole"
    (clone / "src" / "reverie.toml").write_text("project = 'part'\n")
    assert detect_project(str(clone / "src"), None, {}).project == "part"
    assert detect_project(str(clone), None, {}).project == "whole"


def test_a_torn_spooled_turn_does_not_affect_others(tmp_path: Path) -> None:
    spool = tmp_path / "one.spool"
    before, behind = ({"role": "user", "content": text} for text in ("before", "behind"))
    spool_turn(str(spool), before)
    with spool.open("ab") as file:
        file.write(b'{"role": "user", "content": "a power cut \xe6')
    spool_turn(str(spool), {"role": "user", "content": "on the same line"})
    spool_turn(str(spool), behind)
    assert read_spooled_turns(str(spool)) == [before, behind]


def test_a_path_at_the_start_of_a_message_is_no_command() -> None:
    assert is_command("/clear")
    assert is_command("/review:all src/cart.py, please")
    assert not is_command("/etc/hosts names no database: why?")


def test_sessions_with_long_names_share_no_state(tmp_path: Path) -> None:
    folder, end = str(tmp_path), "x" * 300
    HookSessionState(folder, "claude-code", f"a{end}").save(project="shop")
    assert HookSessionState(folder, "claude-code", f"b{end}").facts == {}
    assert HookSessionState(folder, "claude-code", f"a{end}").facts["project"] == "shop"
