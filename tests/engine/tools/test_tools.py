"""Tools by mode, approvals, and the folder that file tools cannot leave."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse
from reverie_services.engine import workspace as workspace_module
from reverie_services.engine.tools.toolset import TOOLS
from reverie_services.engine.tools.web_pages import (
    MAX_PAGE_BYTES,
    extract_page_text,
    fetch_page,
    read_at_most,
)
from reverie_services.engine.workspace import MORE, Workspace
from tests.engine.conftest import EXTRA_TOOLS, Engine

CHANGING = {"write_file", "remember", "update_task", "route_forward", *EXTRA_TOOLS}


async def test_each_mode_offers_its_tools(engine: Engine) -> None:
    engine.play(lambda _: ChatAnswer("ok"))
    group = await engine.group("beck")
    offered = {}
    for mode in ("unified", "plan", "dream"):
        await engine.say(group, "Hello.", mode=mode)
        asked = engine.requests[-1]
        offered[mode] = set(asked.tools)
        # The prompt names the same tools, always in the same order.
        assert f"Tools: {', '.join(sorted(asked.tools))}." in asked.system
    assert offered["unified"] > CHANGING
    assert offered["plan"] == offered["unified"] - CHANGING
    assert offered["dream"] == {"recall", "remember", "list_tasks", "update_task"}
    assert offered["unified"] == TOOLS.keys() - {"web_fetch", "run_command"} | set(EXTRA_TOOLS)


async def test_plan_mode_changes_nothing_even_if_the_model_tries(engine: Engine) -> None:
    place = engine.folder / "planned.txt"
    call = ToolUse("write_file", {"path": place.name, "content": "x"})
    plan = "1. Write planned.txt. 2. Read it. Risk: none."
    engine.play([ChatAnswer(calls=(call,)), ChatAnswer(plan)])
    await engine.agent("eager", ask=[])
    group = await engine.group("eager", project="shop-plan")
    await engine.say(group, "Plan it.", mode="plan")
    assert not place.exists()
    listed = (await engine.stack.get("/v1/memories", params={"tag": "plan"}))["items"]
    assert [(item["kind"], item["content"]) for item in listed] == [("spec", plan)]


@pytest.mark.parametrize("approved", [True, False])
async def test_a_change_waits_for_a_person(engine: Engine, approved: bool) -> None:
    place = engine.folder / f"approved-{approved}.txt"
    call = ToolUse("write_file", {"path": place.name, "content": "x"})

    def script(asked: ChatRequest) -> ChatAnswer:
        return ChatAnswer(asked.last) if asked.is_after_tool else ChatAnswer(calls=(call,))

    engine.play(script)
    group = await engine.group("beck")
    posted = await engine.post(group, "Write it.")
    seen = await engine.watch(group, posted["after"], until="approval")
    turn = await engine.turn(group, "beck", "waiting")
    assert not place.exists()
    decision = {"turn": turn["id"], "call": seen[-1]["data"]["call"], "approved": approved}
    decision |= {"reason": "not today"}
    reply = await engine.call("POST", f"/v1/groups/{group}/approvals", decision)
    assert reply.status == 200
    turns = await engine.ended(group, posted)
    assert turns["beck"]["status"] == "done"
    assert place.exists() == approved
    assert ("wrote" if approved else "not today") in (await engine.answers(group))[0]
    again = await engine.call("POST", f"/v1/groups/{group}/approvals", decision)
    assert again.status == 404


async def test_a_call_that_waits_is_not_made_with_a_tool_that_was_taken_away(
    engine: Engine,
) -> None:
    call = ToolUse("write_file", {"path": "revoked.txt", "content": "x"})
    engine.play([ChatAnswer(calls=(call,)), ChatAnswer("I may not.")])
    await engine.agent("clerk", ask=["write_file"])
    group = await engine.group("clerk")
    posted = await engine.post(group, "Write it.")
    turn = await engine.turn(group, "clerk", "waiting")
    await engine.agent("clerk", tools=["recall"])
    decision = {"turn": turn["id"], "call": next(iter(turn["waits"])), "approved": True}
    reply = await engine.call("POST", f"/v1/groups/{group}/approvals", decision)
    assert reply.status == 200
    assert (await engine.ended(group, posted))["clerk"]["status"] == "done"
    assert not (engine.folder / "revoked.txt").exists()


async def test_no_tenant_sees_the_files_of_another(tmp_path: Path) -> None:
    first, second = (Workspace.of_tenant(tmp_path, tenant) for tenant in (1, 2))
    await first.write("notes.txt", "of the first")
    await Workspace.of_tenant(tmp_path, 1).write("more.txt", "x")
    assert (tmp_path / "1").stat().st_mode & 0o777 == 0o700
    assert await first.find("**/*") == "more.txt\nnotes.txt"
    assert await second.find("**/*") == "(none)"
    with pytest.raises(ValueError, match="outside the folder"):
        await second.read("../1/notes.txt", 1, 10)


async def test_files_are_read_searched_and_written_in_the_folder(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert "wrote 9 bytes" in await workspace.write("src/a.py", "a = 1\nb\n\n")
    assert await workspace.read("src/a.py", 2, 1) == "2\tb"
    assert await workspace.find("**/*.py") == "src/a.py"
    assert await workspace.search("a = ", "**/*") == "src/a.py:1: a = 1"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a.py"]),
        ("**/*", ["a.py", "lib/b.py", "lib/deep/er/c.py"]),
        ("**", ["a.py", "lib/b.py", "lib/deep/er/c.py"]),
        ("lib/*.py", ["lib/b.py"]),
        ("./lib/**/*.py", ["lib/b.py", "lib/deep/er/c.py"]),
        ("**/deep/**/c.*", ["lib/deep/er/c.py"]),
        ("**/**/**/c.py", ["lib/deep/er/c.py"]),
        ("lib", []),
        ("", []),
    ],
)
async def test_a_pattern_finds_each_file_once(
    tmp_path: Path, pattern: str, found: list[str]
) -> None:
    for path in ("a.py", "lib/b.py", "lib/deep/er/c.py"):
        await Workspace(tmp_path).write(path, "x")
    (tmp_path / "lib" / "deep" / "up").symlink_to(tmp_path)
    assert await Workspace(tmp_path).find(pattern) == ("\n".join(found) or "(none)")


async def test_a_walk_through_a_huge_folder_ends_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("same\nsame")
    monkeypatch.setattr(workspace_module, "MAX_ENTRIES", 2)
    assert await Workspace(tmp_path).find("*") == f"0.txt\n1.txt\n{MORE}"
    monkeypatch.setattr(workspace_module, "WALK_SECONDS", -1.0)
    assert await Workspace(tmp_path).find("**/*.none") == MORE
    assert await Workspace(tmp_path).search("same", "**/*") == MORE


async def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no regular file"):
        await Workspace(tmp_path).read("pipe", 1, 10)
    (tmp_path / "blob").write_bytes(bytes(range(256)))
    with pytest.raises(ValueError, match="utf-8"):
        await Workspace(tmp_path).read("blob", 1, 10)
    assert await Workspace(tmp_path).search("x", "**/*") == "(none)"


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "link/secret"])
async def test_a_path_outside_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (tmp_path / "secret").write_text("x")
    (outside / "secret").write_text("x")
    (root / "link").symlink_to(outside)
    workspace = Workspace(root)
    with pytest.raises(ValueError, match="outside the folder"):
        await workspace.read(path, 1, 10)
    with pytest.raises(ValueError, match="outside the folder"):
        await workspace.write(path, "y")
    assert "secret" not in await workspace.find("**/*")


async def test_a_write_follows_no_link_and_keeps_the_mode(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.write_text("mine")
    (root / ".run.sh.partial").symlink_to(outside)
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    await Workspace(root).write("run.sh", "new")
    assert outside.read_text() == "mine"
    assert not script.is_symlink()
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("new", 0o750)
    assert sorted(place.name for place in root.iterdir()) == [".run.sh.partial", "run.sh"]


async def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    with pytest.raises(OSError, match="place"):
        await Workspace(tmp_path).write("place", "x")
    assert os.listdir(tmp_path) == ["place"]


async def test_a_refused_path_is_told_to_the_model(engine: Engine) -> None:
    call = ToolUse("read_file", {"path": "../../etc/passwd"})
    engine.play([ChatAnswer(calls=(call,)), ChatAnswer("I cannot.")])
    group = await engine.group("beck")
    await engine.say(group, "Read it.")
    assert "outside the folder" in engine.requests[-1].last


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://localhost:1/", "file:///etc/passwd"]
)
async def test_no_page_of_this_network_is_fetched(url: str) -> None:
    with pytest.raises((OSError, ValueError), match=r"public|does not answer|begin with"):
        await fetch_page(url)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>One <b>two</b>\n\n<i>three</i>", "One two\nthree"),
        ("a<script>if (x < y) z</SCRIPT >b<style media=x>p{}</style>c", "a b c"),
        ("a<!-- <p> not > this -->b, 1 < 2", "a b, 1 < 2"),
        ("a<script>never closed", "a"),
        ("a<p never closed", "a"),
    ],
)
def test_a_page_becomes_its_text(page: str, text: str) -> None:
    assert extract_page_text(page.encode(), "utf-8") == text


@pytest.mark.parametrize(
    "part", ["<", "<script ", "<script></script", "<!--", "<a ", "</", "<script/", "&", "<!-"]
)
def test_a_hostile_page_is_read_in_linear_time(part: str) -> None:
    """A page of quadratic cost would not end within the time limit of a test."""
    page = (part * (MAX_PAGE_BYTES // len(part))).encode()
    assert len(extract_page_text(b"seen " + page, "utf-8")) <= len(page) + 5


def test_a_charset_that_is_unknown_is_read_as_utf_8() -> None:
    for charset in ("nonsense", "zlib", "punycode", "undefined"):
        assert extract_page_text("größer".encode(), charset) == "größer"


@pytest.mark.parametrize(("limit", "read"), [(3, b"abc"), (6, b"abcdef"), (9, b"abcdef")])
async def test_all_pieces_of_a_page_are_read_up_to_the_limit(limit: int, read: bytes) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"ab", b"cd", b"ef"):
            yield piece

    assert await read_at_most(pieces(), limit) == (read, limit >= 6)
