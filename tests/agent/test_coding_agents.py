"""Every agent that `reverie setup` knows hands its conversations over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reverie.agent.coding_agents import (
    CODING_AGENTS,
    format_answer,
    transcript_paths,
    translate_payload,
)
from reverie.agent.hooks.options import resolve_event_name
from reverie.agent.hooks.turn_spool import build_turn
from reverie.agent.setup.agents import AGENTS, SetupTarget, plan_files
from reverie.agent.transcripts.files import find_transcripts, read_appended, read_turns
from reverie.agent.transcripts.sources import TranscriptLines
from tests.agent.agent_files import WRITERS, write_cline
from tests.agent.agent_payloads import ASKED, CLINE_START, HOOKED, TOLD
from tests.agent.transcript_samples import lines as json_lines
from tests.support.commands import hooked_agent
from tests.support.stack import Stack, eventually


def test_every_agent_of_setup_has_a_way_to_hand_over_its_conversations() -> None:
    assert set(CODING_AGENTS) == set(AGENTS)
    place = SetupTarget(Path("/me"), Path("/shop"), "shop", is_user_wide=False)
    for agent, record in CODING_AGENTS.items():
        assert transcript_paths(agent, "/me", ["/shop"]), agent
        written = "".join(edit("") for edits in plan_files(agent, place).values() for edit in edits)
        calls_hooks = "reverie hook" in written or '"hook"' in written
        assert calls_hooks is not record.follows, agent


@pytest.mark.parametrize("agent", HOOKED)
def test_the_events_of_an_agent_become_its_turns(agent: str) -> None:
    turns = []
    for event, payload in HOOKED[agent]:
        names = resolve_event_name(event, agent)
        assert names is not None, event
        translated = translate_payload(agent, event, payload)
        assert translated["session_id"]
        turn = build_turn(names[0], translated, "x")
        assert turn is not None
        turns.append(turn)
    assert [turn["role"] for turn in turns] == ["user", "tool", "assistant"]
    assert (turns[0]["content"], turns[2]["content"]) == (ASKED, TOLD)
    assert '"command": "pytest -q"' in turns[1]["content"]
    if agent not in {"windsurf", "goose"}:
        assert "2 failed" in turns[1]["content"]


def test_an_answer_has_the_form_that_the_agent_reads() -> None:
    assert format_answer("cursor", "sessionStart", "M") == {"additional_context": "M"}
    assert format_answer("cline", "TaskStart", "M") == {"cancel": False, "contextModification": "M"}
    assert format_answer("claude-code", "PreToolUse", "M")["suppressOutput"] is True
    # Codex refuses an answer that asks for silence.
    assert [*format_answer("codex", "PreToolUse", "M")] == ["hookSpecificOutput"]
    answer = format_answer("gemini-cli", "BeforeAgent", "M")["hookSpecificOutput"]
    assert answer == {"hookEventName": "BeforeAgent", "additionalContext": "M"}


@pytest.mark.parametrize("agent", WRITERS)
def test_the_files_of_an_agent_are_found_and_read(agent: str, tmp_path: Path) -> None:
    written = WRITERS[agent](tmp_path)
    ((path, transcript_format),) = find_transcripts(tmp_path)
    assert path == written
    found = list(
        read_turns(TranscriptLines(path, lambda _: None, lambda _: None), transcript_format, None)
    )
    session = found[0][0]
    assert session.agent == agent.removeprefix("old ")
    assert session.project == ("home" if agent in {"cursor", "windsurf"} else "shop")
    said = [(turn.role, turn.content) for _, turn in found if turn.content != "I run them."]
    roles = [role for role, _ in said]
    # Cursor writes no results of tools.
    assert roles == (["user", "assistant"] if agent == "cursor" else ["user", "tool", "assistant"])
    assert (said[0][1], said[-1][1]) == (ASKED, TOLD)
    assert agent == "cursor" or ("pytest -q" in said[1][1] and "2 failed" in said[1][1])
    assert len({turn.external_id for _, turn in found}) == len(found)
    known = transcript_paths(session.agent, str(tmp_path))
    assert any(path.is_relative_to(folder) for folder in known)


def test_a_folder_of_cursor_is_found_by_its_name(tmp_path: Path) -> None:
    clone = tmp_path / "my.shop"
    clone.mkdir()
    slug = str(clone).strip("/").replace("/", "-").replace(".", "-").replace("_", "-")
    path = tmp_path / f".cursor/projects/{slug}/agent-transcripts/c/c.jsonl"
    path.parent.mkdir(parents=True)
    entry: dict[str, Any] = {
        "role": "user",
        "message": {"content": [{"type": "text", "text": "x"}]},
    }
    path.write_text(json_lines([entry]))
    reader = TranscriptLines(path, lambda _: None, lambda _: None)
    ((session, _),) = read_turns(reader, "cursor", None)
    assert session.project == "my.shop"


@pytest.mark.parametrize("damage", ["", "{", "[1, 2]", '{"messages": 7}', '[{"role": 5}]'])
@pytest.mark.parametrize("name", ["api_conversation_history.json", "sessions.db", "opencode.db"])
def test_a_damaged_file_has_no_turns(name: str, damage: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(damage)
    assert read_appended(path, {}) == ({}, {})


def test_only_what_was_added_to_a_file_is_read_again(tmp_path: Path) -> None:
    path = write_cline(tmp_path)
    document = json.loads(path.read_text())
    everything = document["messages"]
    path.write_text(json.dumps({**document, "messages": everything[:1]}))
    first, counts = read_appended(path, {})
    path.write_text(json.dumps(document))
    added, counts = read_appended(path, counts)
    (turns,) = added.values()
    assert [turn.role for turn in turns] == ["tool", "assistant"]
    assert read_appended(path, counts)[0] == {}
    path.write_text(json.dumps({**document, "messages": everything[:1]}))
    assert read_appended(path, counts)[0] == first


async def test_a_session_of_cursor_gets_its_context_and_is_stored(
    stack: Stack, tmp_path: Path
) -> None:
    rule = "Prices are kept in cents (src/cart/price.py)."
    await stack.post(
        "/v1/remember", {"scope": "project/bookshop", "kind": "convention", "content": rule}
    )
    agent = hooked_agent(stack, tmp_path, "--agent", "cursor")
    start = {"conversation_id": "c-1", "workspace_roots": [str(agent.folder)]}
    code, out, err = await agent.run("sessionStart", json.dumps(start))
    assert (code, err) == (0, "")
    assert rule in json.loads(out)["additional_context"]
    for event, payload in HOOKED["cursor"]:
        assert await agent.run(event, json.dumps({**payload, **start})) == (0, "", "")
    await agent.run("sessionEnd", json.dumps({**start, "reason": "completed"}))
    assert await _stored(stack, "cursor") == ["assistant", "tool", "user"]


async def test_the_prompt_and_the_answer_of_one_turn_of_codex_are_both_stored(
    stack: Stack, tmp_path: Path
) -> None:
    # Both events have the same `turn_id`.
    agent = hooked_agent(stack, tmp_path, "--agent", "codex")
    start = {"session_id": "t-1", "cwd": str(agent.folder), "source": "startup"}
    await agent.run("SessionStart", json.dumps(start))
    for event, payload in HOOKED["codex"]:
        assert (await agent.run(event, json.dumps({**payload, **start})))[0] == 0
    assert await _stored(stack, "codex", has_ended=False) == ["assistant", "tool", "user"]


async def test_codex_is_told_of_a_file_before_its_patch(stack: Stack, tmp_path: Path) -> None:
    trap = "round_tax in src/tax.py must round half up: the tax office refused all else."
    fact = {"scope": "project/bookshop", "kind": "bug", "content": trap}
    await stack.post("/v1/remember", fact)
    agent = hooked_agent(stack, tmp_path, "--agent", "codex")
    start = {"session_id": "t-2", "cwd": str(agent.folder)}
    await agent.run("SessionStart", json.dumps({**start, "source": "resume"}))
    patch = (
        f"*** Begin Patch\n*** Update File: {agent.folder}/src/tax.py\n@@\n-a\n+b\n*** End Patch"
    )
    for tool, command in (("apply_patch", patch), ("Bash", f"apply_patch <<'E'\n{patch}\nE")):
        call = {"session_id": f"of-{tool}", "tool_name": tool, "tool_input": {"command": command}}
        given = json.dumps({**start, **call})

        async def warned(given: str = given) -> str:
            code, out, err = await agent.run("PreToolUse", given)
            assert (code, err) == (0, "")
            return out

        # A gateway that is slow before an edit is as good as none: the next edit asks again.
        assert trap in await eventually(warned), tool


async def test_cline_hands_over_the_file_of_its_task(stack: Stack, tmp_path: Path) -> None:
    agent = hooked_agent(stack, tmp_path, "--agent", "cline")
    write_cline(tmp_path)
    start = {**CLINE_START, "workspaceRoots": [str(agent.folder)]}
    assert (await agent.run("TaskStart", json.dumps(start)))[0] == 0
    assert (await agent.run("TaskCancel", json.dumps(start)))[0] == 0
    assert await _stored(stack, "cline") == ["assistant", "tool", "user"]


async def _stored(stack: Stack, agent: str, has_ended: bool = True) -> list[str]:
    """The roles of the turns of the one session of an agent, once it has ended."""

    async def found() -> dict[str, Any]:
        items = (await stack.get(f"/v1/sessions?agent={agent}"))["items"]
        return items[0] if len(items) == 1 and bool(items[0]["ended_at"]) is has_ended else {}

    session = await eventually(found)
    assert session["project"] == "bookshop"

    async def complete() -> list[str]:
        items = (await stack.get(f"/v1/sessions/{session['id']}/turns"))["items"]
        return sorted(turn["role"] for turn in items) if len(items) == 3 else []

    return await eventually(complete)
