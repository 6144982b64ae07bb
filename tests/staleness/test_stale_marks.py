"""Stale marks through the gateway: propagation, reverts, renames, branches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.stack import Stack, eventually
from tests.support.tables import value

NOW = datetime.now(UTC)
SHA = "{:040x}"
AUTH = "src/middleware/auth.ts"


WAITING = """
select (select count(*) from git_event where tenant = t.id and processed is null)
     + (select count(*) from outbox where tenant = t.id)
     + (select count(*) from memory where tenant = t.id and enriched_version < version)
from tenant t where t.id = %s
"""


class Shop:
    """A project whose commits are told one after the other, an hour apart, from now on."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._n = 0

    async def remember(self, content: str, **more: Any) -> str:
        body = {"content": content, "scope": "project/shop"} | more
        return str((await self.stack.post("/v1/remember", body))["id"])

    async def push(self, *files: dict[str, Any], **more: Any) -> str:
        """Tells a commit and waits until all is applied. Answers its sha."""
        self._n += 1
        sha = SHA.format(self._n)
        at = (NOW + timedelta(hours=self._n)).isoformat()
        change = {
            "project": "shop",
            "branch": "main",
            "after": sha,
            "commits": [{"sha": sha, "subject": f"change {self._n}", "committed_at": at}],
            "files": list(files),
        }
        await self.stack.post("/v1/git/changes", change | more)
        await self.applied()
        return sha

    async def applied(self) -> None:
        """Waits for marks and anchors; a dream may still be due."""

        async def done() -> bool:
            return bool(value(self.stack.admin_url, WAITING, self.stack.number()) == 0)

        await eventually(done)

    async def stale(self, **query: str) -> dict[str, dict[str, Any]]:
        asked = "&".join(f"{name}={one}" for name, one in query.items())
        page = await self.stack.get(f"/v1/stale?{asked}")
        return {item["memory"]["id"]: item for item in page["items"]}


def edited(path: str, line: int, **more: Any) -> dict[str, Any]:
    return {"path": path, "status": "modified", "hunks": [[line, 1, line, 1]]} | more


async def test_marks_spread_to_dependants_and_are_cleared_again(
    stack: Stack,
) -> None:
    shop = Shop(stack)
    lines = {"lines": {AUTH: [[10, 20]]}, "committed_at": NOW.isoformat()}
    root = await shop.remember("Tokens are signed in auth.ts", kind="decision", git=lines)
    apart = await shop.remember("auth.ts logs", kind="bug", git={"lines": {AUTH: [[90, 99]]}})

    async def leaning(n: int, on: str) -> str:
        edge = [{"to": on, "type": "depends_on"}]
        return await shop.remember(f"Rule number {n}", kind="convention", edges=edge)

    first = await leaning(1, root)
    second = await leaning(2, first)
    third = await leaning(3, second)
    fourth = await leaning(4, third)
    ring = {"from": root, "to": second, "type": "depends_on"}
    await stack.post("/v1/links", ring)
    await shop.applied()
    before = await stack.get(f"/v1/impact?path={AUTH}&project=shop")
    sha = await shop.push(edited(AUTH, 15))
    found = await shop.stale(project="shop")
    assert {one: item["grade"] for one, item in found.items()} == {
        root: "stale",
        apart: "suspect",
        first: "suspect",
        second: "suspect",
        third: "suspect",
    }
    assert [round(found[one]["score"], 3) for one in (root, first, second)] == [0.8, 0.64, 0.512]
    assert fourth not in found
    assert {root, first, second} <= {item["id"] for item in before["items"]}
    [evidence] = found[second]["evidence"]
    assert evidence["commit"] == sha
    arrow = "<-depends_on-"
    assert evidence["via"] == [AUTH, "<-touches-", root, arrow, first, arrow, second]
    assert found[root]["evidence"][0]["lines"] == [[10, 20]]
    page = await stack.get("/v1/stale?project=shop")
    who = "Three conventions, a decision and a bug pattern"
    assert page["messages"] == [f"{who} may be stale because {AUTH} changed just now."]
    block = (await stack.get("/v1/context?project=shop"))["markdown"]
    assert f"Three conventions and a decision may be stale because {AUTH} changed" in block
    small = await stack.get("/v1/context?project=shop&budget_tokens=150")
    assert small["tokens"] <= 150
    ranked = await stack.post("/v1/recall", {"query": "tokens are signed"})
    assert ranked["memories"][0]["staleness"] == 0.8
    confirmed = await stack.post(f"/v1/memories/{root}/confirm", None)
    assert confirmed["cleared"] == 1
    assert set(await shop.stale(project="shop")) == {apart}
    # What is known again is no reason; what comes after is.
    assert (await stack.post(f"/v1/memories/{root}/confirm", None))["cleared"] == 0


async def test_a_revert_an_approval_and_a_supersede_clear_marks(stack: Stack) -> None:
    shop = Shop(stack)
    text = ("a.py counts", "b.py sums", "c.py sorts")
    one, two, three = [await shop.remember(words, key=words[:4]) for words in text]
    await shop.applied()
    sha = await shop.push(edited("a.py", 1), edited("b.py", 1), edited("c.py", 1))
    assert set(await shop.stale(project="shop")) == {one, two, three}
    await stack.post(f"/v1/memories/{two}/feedback", {"verdict": "approve"})
    after = {"supersede_reason": "it changed", "valid_from": (NOW + timedelta(days=2)).isoformat()}
    await shop.remember("c.py sorts backwards", key="c.py", **after)
    assert set(await shop.stale(project="shop")) == {one}
    at = (NOW + timedelta(days=1)).isoformat()
    back = {"sha": SHA.format(99), "subject": "Revert", "reverts": sha, "committed_at": at}
    await shop.push(edited("a.py", 1), commits=[back], after=back["sha"])
    assert await shop.stale(project="shop") == {}


async def test_new_text_ends_doubt_and_no_other_edit_does(stack: Stack) -> None:
    shop = Shop(stack)
    one = await shop.remember("a.py counts")
    await shop.applied()
    path = f"/v1/memories/{one}"
    await stack.call("PATCH", path, {"content": "a.py counts twice"})
    await shop.applied()
    commit = {
        "sha": SHA.format(1),
        "subject": "count",
        "committed_at": datetime.now(UTC).isoformat(),
    }
    await shop.push(edited("a.py", 1), commits=[commit], after=commit["sha"])
    assert set(await shop.stale(project="shop")) == {one}
    for body in ({"tags": ["x"]}, {"pinned": True}, {"metadata": {"a": 1}}, {"confidence": 0.9},
                 {"content": "a.py counts twice", "summary": "counts"}):  # fmt: skip
        assert (await stack.call("PATCH", path, body)).body["changed"]
        assert set(await shop.stale(project="shop")) == {one}, body
    await stack.post(f"{path}/rollback", {"version": 1})
    assert set(await shop.stale(project="shop")) == {one}
    assert (await stack.call("PATCH", path, {"content": "a.py counts thrice"})).body["changed"]
    assert await shop.stale(project="shop") == {}


async def test_a_rename_merges_memories_into_the_target_file_and_both_names_find_them(
    stack: Stack,
) -> None:
    shop = Shop(stack)
    old = await shop.remember("the loop in lib/old.py", git={"lines": {"lib/old.py": [[10, 20]]}})
    new = await shop.remember("the plan in lib/new.py")
    await shop.applied()
    await shop.push({"path": "lib/new.py", "status": "deleted"})
    moved = {"path": "lib/new.py", "status": "renamed", "old_path": "lib/old.py"}
    await shop.push(moved)
    assert {one: i["grade"] for one, i in (await shop.stale(project="shop")).items()} == {
        new: "gone"
    }
    for path in ("lib/old.py", "lib/new.py"):
        impact = await stack.get(f"/v1/impact?path={path}&project=shop")
        assert impact["files"] == ["lib/new.py"]
        assert {item["id"] for item in impact["items"]} == {old, new}
    await shop.push(edited("lib/new.py", 12))
    assert (await shop.stale(project="shop"))[old]["grade"] == "stale"
    # One who learned of the old name before it was changed goes along when it comes.
    late = await shop.remember("lib/old.py is slow", valid_from="2026-01-01T00:00:00Z")
    await eventually(lambda: _touches(stack, late, "lib/new.py"))


async def _touches(stack: Stack, memory: str, path: str) -> bool:
    near = (await stack.get(f"/v1/memories/{memory}"))["neighbours"]
    return [one["label"] for one in near if one["kind"] == "file"] == [path]


async def test_changes_on_a_branch_stay_there_until_it_is_merged(stack: Stack) -> None:
    shop = Shop(stack)
    main = await shop.remember("app.py opens the shop")
    git = {"branch": "feat/x", "files": ["app.py"]}
    own = await shop.remember("app.py closes at six", scope="project/shop/feature/feat/x", git=git)
    await shop.applied()
    await shop.push(edited("app.py", 3), branch="feat/x")
    assert set(await shop.stale(project="shop")) == {own}
    await shop.push(edited("app.py", 3), merge=True, merged=["feat/x"])

    async def merged() -> bool:
        return set(await shop.stale(project="shop")) == {main, own}

    await eventually(merged)


async def test_line_ranges_found_later_count_from_when_they_were_found(stack: Stack) -> None:
    shop = Shop(stack)
    memory = await shop.remember("`load` in src/store.py reads all")
    await shop.applied()
    await shop.push(edited("src/store.py", 50))
    assert (await shop.stale(project="shop"))[memory]["score"] == 0.5
    page = await stack.get("/v1/git/anchors?project=shop")
    assert [(one["memory"], one["files"]) for one in page["items"]] == [(memory, ["src/store.py"])]
    place = {
        "commit": SHA.format(1000),
        "committed_at": (NOW - timedelta(hours=1)).isoformat(),
        "symbols": {"src/store.py": [{"name": "load", "lines": [10, 20]}]},
    }
    body = {"project": "shop", "anchors": [{"memory": memory, "git": place}]}
    assert await stack.post("/v1/git/anchors", body) == {"anchored": 1}
    assert (await shop.stale(project="shop"))[memory]["score"] == 0.2
    assert (await stack.get("/v1/git/anchors?project=shop"))["items"] == []
    away = {"old_start": 8, "lines": 20, "path": "src/load.py", "new_start": 100}
    cut = {"path": "src/store.py", "status": "modified", "hunks": [[8, 20, 7, 0]], "moved": [away]}
    await shop.push(cut, {"path": "src/load.py", "status": "modified", "hunks": [[99, 0, 100, 20]]})
    await shop.push(edited("src/load.py", 105))
    found = (await shop.stale(project="shop"))[memory]
    assert [(e["path"], e["grade"]) for e in found["evidence"] if e["grade"] == "stale"] == [
        ("src/load.py", "stale")
    ]


async def test_a_commit_of_the_year_9999_casts_doubt_that_a_confirmation_ends(
    stack: Stack,
) -> None:
    shop = Shop(stack)
    memory = await shop.remember("auth.ts signs tokens", git={"files": [AUTH]})
    await shop.applied()
    sha = SHA.format(1)
    late = [{"sha": sha, "subject": "x", "committed_at": "9999-01-01T00:00:00Z",
             "merged_at": "9998-01-01T00:00:00Z"}]  # fmt: skip
    await shop.push({"path": AUTH, "status": "deleted"}, commits=late)
    [mark] = (await shop.stale(project="shop"))[memory]["evidence"]
    assert datetime.fromisoformat(mark["committed_at"]) < datetime.now(UTC) + timedelta(minutes=1)
    confirmed = await stack.post(f"/v1/memories/{memory}/confirm", {})
    assert confirmed["cleared"] == 1
    newer = await shop.remember("auth.ts is gone", git={"files": [AUTH]})
    await shop.applied()
    await shop.push(edited("other.ts", 1), {"path": AUTH, "status": "mode"}, commits=late)
    assert await shop.stale(project="shop") == {}
    future = {"files": [AUTH], "committed_at": "9999-01-01T00:00:00Z",
              "modified_at": {AUTH: "9999-01-01T00:00:00Z"}}  # fmt: skip
    ahead = await shop.remember("auth.ts will be back", git=future)
    await shop.applied()
    await shop.push({"path": AUTH, "status": "deleted"})
    assert set(await shop.stale(project="shop")) == {newer, ahead}
