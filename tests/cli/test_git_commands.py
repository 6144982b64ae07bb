"""`reverie git` and `reverie admin webhooks` on a running gateway and a real clone."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from reverie.domain.access.principals import KeyRole
from tests.support.commands import command, command_environment
from tests.support.git_clone import Clone, new_clone, numbered
from tests.support.stack import VAULT_KEY, Stack, eventually
from tests.support.tables import rows

HOOK = Path(__file__).parents[2] / "deploy" / "ci" / "git-hook"


def _environment(stack: Stack, home: Path) -> dict[str, str]:
    """Of a CI job: an address and a key that may announce changes and nothing else."""
    key = stack.key_of(role=KeyRole.CI, writes=("project/shop/*",))
    return command_environment(stack, home, key, "shop")


async def _run(
    env: dict[str, str], *words: str, given: str = "", cwd: Path | None = None
) -> tuple[int, str, str]:
    """The exit code of a command, and what it said."""
    if cwd is None:
        return await command(env, *words, given=given)
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "reverie.cli.app.main", *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
        cwd=cwd,
    )
    shown, said = await running.communicate(given.encode())
    return running.returncode or 0, shown.decode(), said.decode()


def _changes(stack: Stack) -> list[dict[str, Any]]:
    query = "select body from git_event where tenant = %s order by id"
    return [body for (body,) in rows(stack.admin_url, query, stack.number())]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    made = new_clone(tmp_path / "clone")
    made.commit("Begin", {"src/loop.py": numbered(20), "old.py": "x\n"})
    return made


async def test_a_ci_job_announces_a_range_and_the_memory_becomes_stale(
    stack: Stack, clone: Clone, tmp_path: Path
) -> None:
    env, here = _environment(stack, tmp_path), ("-C", str(clone.root))
    git = {
        "commit": clone.repo.head_commit,
        "files": ["src/loop.py"],
        "lines": {"src/loop.py": [[3, 4]]},
    }
    body = {"content": "line 3 of src/loop.py runs", "scope": "project/shop", "git": git}
    kept = await stack.post("/v1/remember", {**body, "valid_from": "2025-01-01T00:00:00Z"})
    await stack.settled()
    before = clone.repo.head_commit
    after = clone.commit("Change line 3", {"src/loop.py": numbered(20, _3="other"), "old.py": None})
    span = ("--range", f"{before}..{after}")
    code, shown, _ = await _run(env, "git", "announce", *here, *span, "--dry-run", "--json")
    planned = json.loads(shown)
    assert (code, planned["project"], planned["after"]) == (0, "shop", after)
    assert _changes(stack) == []
    away = {**env, "REVERIE_GATEWAY_URL": "http://127.0.0.1:9"}
    code, shown, said = await _run(away, "git", "announce", *here, *span)
    assert (code, shown.split()[0], "queued until" in said) == (3, "queued", True)
    code, shown, _ = await _run(env, "git", "announce", *here, *span, "--json")
    assert (code, [one["state"] for one in json.loads(shown)]) == (0, ["duplicate"])
    [change] = _changes(stack)
    assert change == planned
    await stack.settled()
    [stale] = (await stack.get("/v1/stale?project=shop"))["items"]
    assert (stale["memory"]["id"], stale["grade"]) == (kept["id"], "stale")
    assert stale["evidence"][0]["commit"] == after
    code, _, said = await _run({**env, "REVERIE_PROJECT": "other"}, "git", "announce", *here, *span)
    assert (code, "project/other" in said) == (5, True)
    code, _, said = await _run(env, "git", "announce", *here, "--range", "nowhere..HEAD")
    assert (code, "no commit nowhere" in said) == (4, True)
    clone.commit("More", {"src/loop.py": numbered(20, _9="nine")})
    code, shown, _ = await _run(env, "git", "announce", *here)
    assert (code, shown.split()[:3]) == (0, ["announced", "shop", "main"])
    code, shown, _ = await _run(env, "git", "watch", *here, "--once")
    assert (code, shown) == (0, "")
    clone.git("checkout", "-q", "--detach")
    code, _, said = await _run(env, "git", "announce", *here)
    assert (code, "No branch is checked out" in said) == (0, True)
    assert len(_changes(stack)) == 2


async def test_a_clone_can_be_watched(stack: Stack, clone: Clone, tmp_path: Path) -> None:
    await stack.post("/v1/remember", {"content": "known", "scope": "project/shop"})
    env = _environment(stack, tmp_path)
    watching = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "reverie.cli.app.main"),
        *("git", "watch", "-C", str(clone.root)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    try:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert b"watching" in await watching.stderr.readline()
        await eventually(lambda: _noted(clone))
        clone.commit("One", {"src/loop.py": numbered(20, _1="one")})
        async with asyncio.timeout(60):
            assert b"announced" in await watching.stdout.readline()
    finally:
        watching.terminate()
        await watching.wait()
    assert [one["branch"] for one in _changes(stack)] == ["main"]


async def test_git_hooks_announce_commits_in_a_clone_and_pushes_on_a_server(
    stack: Stack, clone: Clone, tmp_path: Path
) -> None:
    await stack.post("/v1/remember", {"content": "known", "scope": "project/shop"})
    env = {
        name: v for name, v in _environment(stack, tmp_path).items() if name != "REVERIE_PROJECT"
    }
    hooked = clone.repo.head_commit
    bare = tmp_path / "shop.git"
    clone.git("clone", "-q", "--bare", str(clone.root), str(bare))
    for folder, name in ((clone.root / ".git", "post-commit"), (bare, "post-receive")):
        (folder / "hooks" / name).symlink_to(HOOK)
        for setting, said in (
            ("reverie.command", f"{sys.executable} -P -m reverie.cli.app.main"),
            ("reverie.wait", "true"),
        ):
            clone.git("--git-dir", str(folder), "config", setting, said)
    clone.git("config", "reverie.project", "shop")
    files = {"src/loop.py": numbered(20, _1="one")}
    clone.write(files)
    await asyncio.to_thread(clone.git, "commit", "-qam", "One", **env)
    first = clone.repo.head_commit
    clone.git("switch", "-q", "-c", "feat/x")
    clone.write({"src/loop.py": numbered(20, _2="two")})
    # The server announces what the clone did not.
    clone.git("-c", f"core.hooksPath={os.devnull}", "commit", "-qam", "Two")
    clone.git("remote", "add", "server", str(bare))
    await asyncio.to_thread(clone.git, "push", "-q", "server", "feat/x", **env)
    await asyncio.to_thread(clone.git, "push", "-q", "server", ":feat/x", **env)
    told = [(one["branch"], one.get("before"), one.get("after")) for one in _changes(stack)]
    second = clone.repo.head_commit
    assert told == [
        ("main", hooked, first),
        ("feat/x", None, second),
        ("feat/x", second, None),
    ], (clone.root / ".git/reverie/hook.log").read_text() + (bare / "reverie/hook.log").read_text()


async def test_an_operator_configures_webhooks(stack: Stack, tmp_path: Path) -> None:
    env = _environment(stack, tmp_path)
    admin = {**env, "REVERIE_DATABASE_URL": stack.admin_url, "REVERIE_VAULT_KEY": VAULT_KEY}

    async def hooks(*words: str, given: str = "") -> tuple[int, str, str]:
        told = ("admin", "webhooks", *words, "--tenant", stack.tenant)
        return await _run(admin, *told, given=given)

    code, shown, _ = await hooks("set", "shop", "github", "--json")
    made = json.loads(shown)
    assert (code, made["path"], len(made["secret"])) == (
        0,
        f"/v1/git/github/{stack.tenant}/shop",
        43,
    )
    code, shown, _ = await hooks("set", "shop", "gitlab", "--stdin", given="t0k3n-t0k3n\n")
    assert (code, "t0k3n" in shown) == (0, False)
    code, shown, _ = await hooks("list", "--json")
    assert [one["kind"] for one in json.loads(shown)] == ["github", "gitlab"]
    headers = {"X-Gitlab-Token": "t0k3n-t0k3n", "Content-Type": "application/json"}
    push = {"ref": "refs/tags/v1", "before": "0" * 40, "after": "a" * 40}
    path = f"/v1/git/gitlab/{stack.tenant}/shop"
    assert (await stack.call("POST", path, push, headers=headers)).status == 202
    assert (await hooks("remove", "shop", "gitlab"))[0] == 0
    assert (await stack.call("POST", path, push, headers=headers)).status == 401
    for wrong in (("set", "shop", "cvs"), ("set", "shop", "github", "--stdin")):
        assert (await hooks(*wrong))[0] == 2


async def _noted(clone: Clone) -> bool:
    return (clone.root / ".git/reverie/announced.json").exists()


async def test_the_lines_that_memories_mention_are_found_in_a_clone(
    stack: Stack, clone: Clone, tmp_path: Path
) -> None:
    source = "import os\n\n\ndef load(path):\n    return os.stat(path)\n\n\ndef save():\n    pass\n"
    clone.commit("Add a store", {"src/store.py": source})
    known = {"scope": "project/shop", "valid_from": "2099-01-01T00:00:00Z"}
    text = "`load` in store.py follows links"
    memory = (await stack.post("/v1/remember", {"content": text, **known}))["id"]
    await stack.post("/v1/remember", {"content": "gone.py is slow", **known})
    await stack.settled()
    key = stack.key_of(role=KeyRole.WRITER, writes=("project/shop",), reads=("project/shop",))
    env = {**_environment(stack, tmp_path), "REVERIE_API_KEY": key}
    code, shown, said = await _run(env, "git", "anchor", "-C", str(clone.root), "--dry-run")
    assert (code, said) == (0, "")
    assert f"{memory[-8:]}  src/store.py: load" in shown
    code, shown, _ = await _run(env, "git", "anchor", "-C", str(clone.root), "--json")
    found = {one["memory"]: one["symbols"] for one in json.loads(shown)}
    assert (code, found[memory]) == (0, {"src/store.py": ["load"]})
    query = "select meta from edge where meta ? 'symbols' and tenant = %s"
    [(meta,)] = rows(stack.admin_url, query, stack.number())
    assert (meta["named"], meta["symbols"]) == ("src/store.py", [["load", 4, 5]])
    code, shown, _ = await _run(env, "git", "anchor", "-C", str(clone.root), "--json")
    assert memory not in {one["memory"] for one in json.loads(shown)}
    fact = ("remember", "`save` in src/store.py keeps nothing", "--project", "shop", "--json")
    code, shown, _ = await _run(env, *fact, cwd=clone.root)
    assert code == 0
    kept = await stack.get(f"/v1/memories/{json.loads(shown)['id']}")
    assert kept["provenance"]["git"]["symbols"] == {
        "src/store.py": [{"name": "save", "lines": [8, 9]}]
    }


async def test_hints_of_the_gateway_are_printed(stack: Stack, clone: Clone, tmp_path: Path) -> None:
    key = stack.key_of(role=KeyRole.CI, writes=("project/shop",))
    env = {**_environment(stack, tmp_path), "REVERIE_API_KEY": key}
    before, after = clone.repo.head_commit, clone.commit("More", {"old.py": "y\n"})
    words = ("git", "announce", "-C", str(clone.root), "--range", f"{before}..{after}")
    code, _, said = await _run(env, *words, "--merged", "feat/x")
    assert code == 0, said
    assert "feat/x" in said
    code, shown, said = await _run(env, *words, "--merged", "feat/x", "--json")
    assert (code, said) == (0, "")
    assert "feat/x" in str(json.loads(shown)[0]["hints"])
