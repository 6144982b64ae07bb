"""Memory, task, skill and session commands on a running system."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from reverie.cli.app.errors import (
    CONFLICT,
    FAILED,
    NOT_FOUND,
    NOT_PERMITTED,
    NOT_RUNNING,
    USAGE,
    print_error,
)
from reverie.cli.app.gateway_client import GatewayError
from reverie.domain.access.principals import KeyRole
from reverie.domain.core.ids import short_id
from tests.support.commands import command
from tests.support.stack import Stack
from tests.support.tables import tell_of


class Shell:
    """A terminal in a project's folder."""

    def __init__(self, stack: Stack, home: Path) -> None:
        self.env = {
            "REVERIE_API_KEY": stack.key,
            "REVERIE_GATEWAY_URL": stack.url,
            "REVERIE_HOME": str(home),
            "COLUMNS": "200",
        }

    async def run(self, *words: str, given: str = "") -> tuple[int, str]:
        """The exit code and what was printed; of an error its words."""
        code, printed, error = await command(self.env, *words, given=given)
        return code, printed or error.strip()

    async def said(self, *words: str, given: str = "") -> str:
        """What a command printed that must succeed."""
        code, printed = await self.run(*words, given=given)
        assert code == 0, printed
        return printed

    async def json(self, *words: str) -> Any:
        """The JSON of a command that must succeed."""
        return json.loads(await self.said(*words, "--json"))


@pytest.fixture
def shell(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "reverie.toml").write_text('project = "shop"\n')
    monkeypatch.chdir(folder)
    return Shell(stack, tmp_path / "home")


async def test_memories_are_written_found_changed_and_forgotten_from_the_terminal(
    shell: Shell, stack: Stack
) -> None:
    said = await shell.said("remember", "We deploy on Thursdays.", "-k", "convention")
    assert re.fullmatch(r"created [0-9a-f]{8}, version 1\n", said)
    deploys = said.split()[1].strip(",")
    known = ("remember", "-", "-k", "decision", "-f", "src/cart.py")
    cause = (
        (await shell.said(*known, given="Thursdays, for the shop is quiet.")).split()[1].strip(",")
    )
    hits = await shell.json("recall", "when", "do", "we", "deploy")
    assert hits["memories"][0]["scope"] == "project/shop"
    assert deploys in await shell.said("recall", "when do we deploy")
    assert "We deploy on Thursdays." in await shell.said("context", "--format", "markdown")
    assert (await shell.json("context"))["tokens"] > 0
    assert deploys in await shell.said("memories", "--kind", "convention")

    assert "linked: " in await shell.said("link", cause, deploys, "led_to")
    assert "was linked already" in await shell.said("link", cause, deploys, "led_to")
    assert f"<- led_to  {cause}" in await shell.said("subgraph", deploys)
    assert f"led_to       {cause}" in await shell.said("show", deploys)

    await stack.settled()
    assert cause in await shell.said("impact", "src/cart.py")
    assert "removed the edge" in await shell.said("unlink", deploys, cause)
    assert (await shell.run("unlink", deploys, cause))[0] == USAGE
    assert await shell.said("stale") == "No results.\n"

    assert "version 2" in await shell.said(
        "feedback", deploys, "edit", "--content", "We deploy on Fridays."
    )
    assert "We deploy on Thursdays." in await shell.said("history", deploys)
    assert "version 3 restores version 1" in await shell.said("rollback", deploys, "1")
    assert "source" in await shell.said("provenance", deploys)
    assert "is pinned" in await shell.said("pin", deploys)
    assert "not pinned" in await shell.said("unpin", deploys)
    assert "confirmed" in await shell.said("confirm", deploys)
    would = await shell.json("gc")
    assert (would["archived"], would["examined"] > 0) == (0, True)
    assert "would be: 0 archived" in await shell.said("gc")
    assert "0 archived" in await shell.said("gc", "--yes")
    assert "was forgotten" in await shell.said("forget", cause)
    assert (await shell.run("show", cause))[0] == NOT_FOUND
    several = await shell.said("forget", cause, deploys)
    assert several.startswith("1 memory forgotten; until 20")
    assert "`reverie restore` brings each back" in several
    assert (await shell.said("forget", cause, deploys)).strip() == "0 memories forgotten"


async def test_recall_shows_the_sentence_that_answers_of_a_long_memory(shell: Shell) -> None:
    notes = " ".join(f"Shelf {n} holds maps of the coast." for n in range(40))
    answer = "The lighthouse lamp needs two litres of oil."
    await shell.said("remember", f"{notes} {answer} {notes}", "-k", "reference")
    shown = await shell.said("recall", "how many litres of oil does the lamp need?")
    assert answer in " ".join(shown.split())


async def test_a_changed_tier_stands_in_the_history(shell: Shell) -> None:
    said = await shell.said("remember", "Gulls sleep on the pier.", "--tier", "cold")
    id = said.split()[1].strip(",")
    await shell.said("edit", id, "--tier", "hot")
    lines = (await shell.said("history", id)).splitlines()
    assert [("hot" in line, "cold" in line) for line in lines[1:]] == [(True, False), (False, True)]


def test_a_wrong_key_is_explained_to_who_runs_commands(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(GatewayError("send a header", {"code": "unauthenticated"}))
    said = " ".join(capsys.readouterr().err.split())
    assert "set REVERIE_API_KEY to a valid key, or unset it" in said


async def test_tasks_skills_and_sessions_are_addressed_by_short_ids(
    shell: Shell, stack: Stack
) -> None:
    first = (await shell.said("task", "add", "Mend the cart")).split()[1]
    second = (await shell.said("task", "add", "Ship it", "--after", first)).split()[1]
    listed = await shell.said("task", "list", "--claimable")
    assert first in listed
    assert f"\n{second}" not in listed
    assert "claimed by ann" in await shell.said("task", "claim", first, "--agent", "ann")
    code, why = await shell.run("task", "claim", first, "--agent", "bob")
    assert (code, "ann" in why) == (CONFLICT, True)
    assert "is todo" in await shell.said("task", "release", first, "--agent", "ann")
    assert "is done" in await shell.said("task", "update", first, "done")

    steps = ("--step", "git switch {branch}", "--step", "make ship")
    skill = await shell.json("remember", "Ship {branch}", "-k", "skill", *steps)
    assert short_id_of(skill) in await shell.said("skill", "list")
    told = await shell.said("skill", "replay", short_id_of(skill), "branch=main")
    assert "1. git switch main" in told

    started = await stack.post("/v1/sessions/start", {"agent": "ann", "project": "shop"})
    turn = {"role": "user", "content": "The cart loses items."}
    await stack.post("/v1/turns", {"session": started["session"], "turns": [turn]})
    near = started["session"].replace("-", "")[-8:]
    assert near in await shell.said("sessions", "--agent", "ann")
    assert "The cart loses items." in await shell.said("sessions", near)
    assert "Mend the cart" in await shell.said("preflow", near, "the cart", "--include-seen")
    assert (await shell.run("sessions", "ffffffff"))[0] == NOT_FOUND


async def test_errors_have_a_message_and_an_exit_code(shell: Shell, stack: Stack) -> None:
    assert await shell.run("show", "nope") == (USAGE, "id: 'nope' is not an id")
    assert (await shell.run("remember", " "))[0] == USAGE
    assert "give a file" in (await shell.run("impact"))[1]
    made = short_id_of(await shell.json("remember", "The shop opens at nine."))
    assert await shell.run("restore", made) == (
        CONFLICT,
        "the memory is active, neither archived nor forgotten",
    )
    own = dict(shell.env)
    shell.env["REVERIE_API_KEY"] = stack.key_of(role=KeyRole.READER)
    assert (await shell.run("remember", "not mine"))[0] == NOT_PERMITTED
    shell.env["REVERIE_API_KEY"] = "no-such-key"
    assert (await shell.run("memories"))[0] == NOT_PERMITTED
    shell.env["REVERIE_API_KEY"] = ""
    code, why = await shell.run("memories")
    assert (code, "set REVERIE_API_KEY" in why) == (USAGE, True)
    shell.env.update(own, REVERIE_GATEWAY_URL="http://127.0.0.1:9")
    assert (await shell.run("memories"))[0] == NOT_RUNNING


def short_id_of(found: dict[str, Any]) -> str:
    """The last eight digits of what was made."""
    return short_id(UUID(found["id"]))


async def test_an_invalid_line_is_refused_by_its_number_and_files_apply_to_all_lines(
    shell: Shell, stack: Stack
) -> None:
    odd = json.dumps({"content": "One line\u2028in all."}, ensure_ascii=False)
    lines = ["Pears ripen late.", "", "", '{"content": "Plums", "kind": "fruit"}', odd]
    words = ["remember", "-", "--lines", "--file", "src/fruit.py", "--scope", "project/orchard"]
    code, _, error = await command(shell.env, *words, given="\n".join(lines))
    assert code == FAILED
    assert "4: invalid: kind" in error
    found = (await stack.get("/v1/memories", params={"scope": "project/orchard"}))["items"]
    kept = {one["content"]: one["provenance"]["git"]["files"] for one in found}
    files = ["src/fruit.py"]
    assert kept == {"Pears ripen late.": files, "One line\u2028in all.": files}


async def test_the_list_of_memories_marks_what_is_superseded_and_takes_a_project(
    shell: Shell,
) -> None:
    key = ("--key", "window", "-k", "decision")
    await shell.said("remember", "We deploy on Thursdays.", *key)
    await shell.said("remember", "We deploy on Mondays.", *key, "--supersede-reason", "moved")
    await shell.said("remember", "The till prints receipts.", "--project", "till")
    lines = (await shell.said("memories")).splitlines()
    [old] = [line for line in lines if "on Thursdays" in line]
    [new] = [line for line in lines if "on Mondays" in line]
    assert "superseded" in old
    assert "superseded" not in new
    listed = await shell.said("memories", "--project", "till")
    assert "receipts" in listed
    assert "Mondays" not in listed
    both = await shell.run("memories", "--project", "till", "--scope", "global")
    assert both[0] == USAGE


async def test_a_sentence_of_a_language_model_is_told_with_what_it_cites(
    shell: Shell, stack: Stack
) -> None:
    scope = "project/lamps"
    memory = (await stack.post("/v1/remember", {"content": "Lamp one is lit.", "scope": scope}))[
        "id"
    ]
    tell_of(stack.admin_url, memory, "Lamps are lit.")
    told = await shell.said("dream", "summaries", "--scope", scope)
    assert f"\n- Lamps are lit. [{memory[-8:]}]" in told


async def test_the_counts_of_each_line_of_stats_sum_to_its_total(
    shell: Shell, stack: Stack
) -> None:
    git = {"files": ["src/loop.py", "src/end.py"]}
    for kind in ("bug", "lesson"):
        body = {"content": f"The {kind} is in the loop", "kind": kind, "git": git}
        await stack.post("/v1/remember", {**body, "scope": "project/shop"})
    await stack.settled()
    printed = await shell.said("stats")
    for name in ("memories", "anchors"):
        [line] = [line for line in printed.splitlines() if line.startswith(name)]
        total, *counts = [int(number) for number in re.findall(r"\d+", line)]
        assert total == sum(counts) > 0, line
