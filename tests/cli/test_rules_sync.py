"""The rules-file command synchronises a folder with a running system, both ways."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

from tests.support.commands import command
from tests.support.stack import Stack, eventually

RULES = "# Rules\n\nPrices are kept in cents.\n\n## Deploys\n\nOnly on Thursdays.\n"


def _environment(stack: Stack, folder: Path) -> dict[str, str]:
    own = {"REVERIE_GATEWAY_URL": stack.url, "REVERIE_API_KEY": stack.key}
    return {**os.environ, **own, "REVERIE_HOME": str(folder / "home")}


async def _command(stack: Stack, root: Path, *words: str) -> tuple[int, str]:
    code, said, _ = await command(_environment(stack, root.parent), *words, "-C", str(root))
    return code, said


async def _run(stack: Stack, root: Path, *words: str) -> tuple[int, list[tuple[str, str]]]:
    """The exit code of `reverie rules`, and what it did to what."""
    code, said = await _command(stack, root, "rules", *words, "--project", "shop", "--json")
    return code, [(step["action"], step["subject"]) for step in json.loads(said)]


async def _memories(stack: Stack) -> dict[str, dict[str, Any]]:
    found = (await stack.get("/v1/memories?status=active&limit=100"))["items"]
    return {one["content"]: one for one in found if one["scope"].startswith("project/shop")}


async def test_rule_files_and_memories_are_synchronized_both_ways(
    stack: Stack, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    file, outside = root / "AGENTS.md", RULES.replace("\n", "\r\n")
    file.write_text("\ufeff" + outside, newline="")
    assert await _run(stack, root, "import") == (
        0, [("remembered", "Rules"), ("remembered", "Rules > Deploys")],
    )  # fmt: skip
    assert await _run(stack, root, "sync") == (0, [])
    deploys = (await _memories(stack))["Rules > Deploys\n\nOnly on Thursdays."]
    assert (deploys["kind"], deploys["tags"]) == ("convention", ["agent-file"])
    assert deploys["metadata"]["agent_file"] == "AGENTS.md"

    told = {"scope": "project/shop", "kind": "convention"}
    sign = await stack.post("/v1/remember", {**told, "content": "Sign with RS256"})
    logs = await stack.post("/v1/remember", {**told, "content": "Log in JSON"})
    dry = await _run(stack, root, "export", "AGENTS.md", "--dry-run")
    assert dry == (0, [("written", "Sign with RS256"), ("written", "Log in JSON")])
    assert file.read_bytes() == ("\ufeff" + outside).encode()
    assert await _run(stack, root, "export", "AGENTS.md") == dry
    text = file.read_bytes().decode()
    assert text.startswith("\ufeff" + outside)
    assert text.replace("\r\n", "").count("\n") == 0
    assert await _run(stack, root, "sync") == (0, [])

    edited = text.replace("RS256", "ES256").replace("Thursdays", "Mondays")
    edited = edited.replace("- Log in JSON\r\n", "- Log in JSON\r\n- Name tests as sentences\r\n")
    file.write_text(edited, newline="")
    code, steps = await _run(stack, root, "sync")
    assert (code, sorted(steps)) == (
        0,
        [
            ("edited", "Sign with ES256"),
            ("remembered", "Name tests as sentences"),
            ("remembered", "Rules > Deploys"),
        ],
    )
    now = await _memories(stack)
    assert now["Sign with ES256"]["id"] == sign["id"]
    assert "Rules > Deploys\n\nOnly on Mondays." in now
    assert "Rules > Deploys\n\nOnly on Thursdays." not in now
    assert now["Name tests as sentences"]["tags"] == []
    assert await _run(stack, root, "sync") == (0, [])

    await stack.call("PATCH", f"/v1/memories/{sign['id']}", {"content": "Sign with EdDSA"})
    text = file.read_bytes().decode()
    file.write_text(text.replace("ES256", "HS256"), newline="")
    clash = (1, [("conflict", "Sign with HS256")])
    assert await _run(stack, root, "sync") == clash
    assert await _run(stack, root, "sync") == clash
    assert "Sign with EdDSA" in await _memories(stack)
    assert (await _run(stack, root, "sync", "--prefer", "memory"))[0] == 0
    assert "- Sign with EdDSA\r\n" in file.read_bytes().decode()

    lines = file.read_bytes().decode().split("\r\n")
    gone = [one for one in lines if logs["id"] not in one or "end" in one]
    cut = "\r\n".join(one for one in gone if one not in {"- Log in JSON", "Only on Mondays."})
    file.write_text(cut, newline="")
    assert sorted((await _run(stack, root, "sync"))[1]) == [
        ("forgotten", "Rules > Deploys"),
        ("left out", "Log in JSON"),
    ]
    assert "Log in JSON" in await _memories(stack)
    assert "Log in JSON" not in file.read_text()
    assert (await _command(stack, root, "rules", "export", "notes.md"))[0] == 2
    code, said = await _command(stack, root, "rules", "sync", "--dry-run")
    assert (code, said) == (0, "")
    assert "Log in JSON" not in file.read_text()

    await _watched(stack, root, file)


def _say(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"in cents", b"in euro cents"))


async def _watched(stack: Stack, root: Path, file: Path) -> None:
    watcher = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "reverie.cli.app.main", "rules", "watch", "-C", str(root),
        env=_environment(stack, root.parent), stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    assert watcher.stderr is not None
    try:
        async with asyncio.timeout(60):
            assert b"watching" in await watcher.stderr.readline()
        _say(file)

        async def known() -> bool:
            return "Rules\n\nPrices are kept in euro cents." in await _memories(stack)

        await eventually(known)
    finally:
        watcher.terminate()
        await watcher.communicate()


async def test_a_new_project_can_import_the_rules_of_its_files(
    stack: Stack, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "AGENTS.md").write_text(RULES)
    code, said = await _command(stack, root, "init", "shop", "--json")
    assert (code, json.loads(said)["project"], "remembered" in said) == (0, "shop", False)
    assert await _memories(stack) == {}
    for remembered in (2, 0):
        code, said = await _command(stack, root, "init", "--import-files", "--json")
        told = json.loads(said)
        assert (code, told["remembered"], told["rejected"]) == (0, remembered, [])
    assert "Rules > Deploys\n\nOnly on Thursdays." in await _memories(stack)
