"""`reverie import transcripts` on a running system."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent.agent_files import write_cline, write_opencode
from tests.agent.transcript_samples import AIDER, CLAUDE, CODEX, SPECSTORY, lines
from tests.support.commands import command
from tests.support.stack import Stack

TOKEN = "ghp_" + "x7Kd92LmQp4RtVwYz3Bn" * 2


async def _run(stack: Stack, folder: Path, *words: str) -> tuple[int, str, str]:
    env = {
        "REVERIE_GATEWAY_URL": stack.url,
        "REVERIE_API_KEY": stack.key,
        "REVERIE_HOME": str(folder / "home"),
    }
    return await command(env, "import", "transcripts", *words)


def _written(folder: Path) -> Path:
    """A folder with a transcript of each format."""
    work = folder / "work" / "shop"
    (work / ".specstory" / "history").mkdir(parents=True)
    said = {**CLAUDE[1], "uuid": "u8", "message": {"role": "user", "content": f"Use {TOKEN} here"}}
    (work / "s-1.jsonl").write_text(lines([*CLAUDE, said]) + "no json\n")
    (work / "rollout-c.jsonl").write_text(lines(CODEX))
    (work / ".aider.chat.history.md").write_text(AIDER)
    (work / ".specstory" / "history" / "t.md").write_text(SPECSTORY)
    return folder / "work"


async def _sessions(stack: Stack) -> dict[str, dict[str, Any]]:
    return {one["external_id"]: one for one in (await stack.get("/v1/sessions?limit=50"))["items"]}


async def test_conversations_of_every_program_are_imported_once_with_their_times(
    stack: Stack, tmp_path: Path
) -> None:
    folder = _written(tmp_path)
    code, told, _ = await _run(stack, tmp_path, str(folder), "--dry-run")
    assert (code, told[:14]) == (0, "would be read:")
    assert await _sessions(stack) == {}
    code, told, err = await _run(stack, tmp_path, str(folder), "--json")
    assert code == 0, err
    report = json.loads(told)
    assert (report["files"], report["sessions"], report["accepted"]) == (4, 7, 15)
    assert (report["unreadable"], report["redactions"], report["rejected"]) == (1, 1, 0)
    assert report["notes"] == [f"{folder}/shop/s-1.jsonl:8: cannot be read, skipped"]
    sessions = await _sessions(stack)
    assert {one["project"] for one in sessions.values()} == {"shop"}
    assert {name: one["agent"] for name, one in sessions.items()} == {
        "s-1": "claude-code",
        "s-1/a7": "claude-code/sub/subagent",
        "c-1": "codex",
        "shop/2026-03-02T10:00:00": "aider",
        "shop/2026-03-02T10:00:00/1": "aider",
        "specstory/t-9": "cursor-ide",
        "specstory/t-9/sidechain": "cursor-ide/sub/subagent",
    }
    one = sessions["s-1"]
    assert (one["started_at"], one["ended_at"]) == ("2026-03-02T10:00:00Z", "2026-03-02T10:00:59Z")
    turns = (await stack.get(f"/v1/sessions/{one['id']}/turns"))["items"]
    assert [turn["external_id"] for turn in turns] == ["u1", "toolu_1", "u5", "u8"]
    assert TOKEN not in str(turns)

    code, told, _ = await _run(stack, tmp_path, str(folder))
    assert code == 0
    assert "0 turns, 15 duplicates" in told
    assert {k: v | {"summary": None} for k, v in (await _sessions(stack)).items()} == {
        k: v | {"summary": None} for k, v in sessions.items()
    }

    code, _, err = await _run(stack, tmp_path, str(tmp_path / "nowhere"))
    assert (code, "there is no" in err) == (2, True)
    (tmp_path / "notes.md").write_text("# Notes\n")
    code, _, err = await _run(stack, tmp_path, str(tmp_path / "notes.md"))
    assert (code, "holds no transcript" in err) == (2, True)


async def test_the_conversations_of_an_agent_are_found_without_a_path(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    code, _, err = await _run(stack, tmp_path, "--agent", "cline")
    assert (code, "cline has no conversations here" in err) == (2, True)
    write_cline(tmp_path)
    write_opencode(tmp_path)
    words = ("--agent", "cline", "--agent", "opencode", "--json")
    for accepted, duplicates in ((6, 0), (0, 6)):
        code, told, err = await _run(stack, tmp_path, *words)
        assert code == 0, err
        report = json.loads(told)
        assert (report["accepted"], report["duplicates"]) == (accepted, duplicates)
    assert {one["agent"] for one in (await _sessions(stack)).values()} == {"cline", "opencode"}
    assert (await _run(stack, tmp_path))[0] == 2
