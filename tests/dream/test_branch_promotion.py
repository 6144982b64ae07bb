"""A merged branch's memories are promoted to the project by a dream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from reverie.bus.nats_bus import connect
from reverie.bus.outbox_relay import EventPublisher
from reverie.store.platform.outbox import OutboxTable
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.dream.digest.worker import DreamWorker
from tests.dream.test_dream_worker import dream_parts
from tests.staleness.test_stale_marks import NOW, Shop, edited
from tests.support.stack import Stack, eventually, running_stack
from tests.support.store_setup import open_store

BRANCH = "project/shop/feature/feat/x"


@pytest.fixture
async def idle(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    """A stack without a dream worker."""
    async with running_stack(database, nats_url, model_home(), dream_worker_enabled=False) as made:
        yield made


async def _session(stack: Stack) -> None:
    """Work on the branch that no dream has seen when it is merged."""
    begin = {"agent": "ann", "project": "shop", "branch": "feat/x"}
    session = (await stack.post("/v1/sessions/start", begin))["session"]
    said = "Never close the shop before six, always ring the bell first."
    told = {"session": session, "turns": [{"role": "user", "content": said}]}
    await stack.post("/v1/turns", told)


async def _memory(stack: Stack, id: str) -> Any:
    return await stack.get(f"/v1/memories/{id}")


async def test_a_merge_promotes_the_memories_of_its_branch_and_records_it(
    idle: Stack, database: DatabaseUrls, nats_url: str
) -> None:
    shop = Shop(idle)
    git = {"branch": "feat/x", "files": ["app.py"]}
    own = await shop.remember("app.py closes at six", scope=BRANCH, git=git)
    newer = await shop.remember("open at nine", scope=BRANCH, key="hours")
    older = await shop.remember("open at ten", key="hours")
    other = await shop.remember("try blue", scope="project/shop/feature/feat/y")
    await _session(idle)
    await shop.applied()
    branch = (await _memory(idle, own))["scope"]
    elsewhere = await shop.push(edited("app.py", 3))
    assert await shop.stale(project="shop") == {}
    merge = await shop.push(edited("web.py", 3), merge=True, merged=["feat/x"])
    waiting = {one["scope"]: one for one in (await idle.get("/v1/dream"))["items"]}
    assert {waiting[scope]["reason"] for scope in ("project/shop", branch)} == {"merge"}
    end = {"branch": "feat/x", "deleted": True, "after": None, "commits": [], "before": merge}
    await shop.push(**end)
    standing = await _memory(idle, own)
    assert (standing["scope"], standing["status"]) == (branch, "active")

    async with open_store(database) as store, connect(nats_url, "dream") as bus:
        assert await bus.wait_connected(20)
        publisher = EventPublisher(bus, OutboxTable(store.db))
        await DreamWorker(replace(dream_parts(store), publisher=publisher)).run_due_dreams()
    await shop.applied()
    detail = await _memory(idle, own)
    promoted = detail["metadata"]["promoted"]
    assert (detail["scope"], detail["status"]) == ("project/shop", "active")
    assert (promoted["commit"], promoted["branch"]) == (merge, branch.rpartition("/")[2])
    states = {one: (await _memory(idle, one))["status"] for one in (newer, older, other)}
    assert states == {newer: "active", older: "superseded", other: "active"}
    run = await idle.get(f"/v1/dreams/{promoted['run']}")
    assert {one["memory"] for one in run["decisions"] if one["outcome"] == "promoted"} >= {
        own,
        newer,
    }
    assert all(
        "feat/x" in one["reason"] for one in run["decisions"] if one["outcome"] == "promoted"
    )
    page = await idle.get("/v1/memories?scope=project/shop&limit=100")
    own_memories = [one for one in page["items"] if one["kind"] != "session"]
    dreamt = [one for one in own_memories if "ring the bell" in one["content"]]
    assert [one["metadata"]["promoted"]["commit"] for one in dreamt] == [merge]
    # What the main line had done to its file meanwhile concerns it now; the merge itself does not.
    found = await shop.stale(project="shop")
    assert [one["commit"] for one in found[own]["evidence"]] == [elsewhere]
    assert (await idle.get("/v1/dream"))["items"] == []


async def test_a_repeated_change_that_names_its_branches_promotes_them(
    stack: Stack,
) -> None:
    shop = Shop(stack)
    own = await shop.remember("app.py closes at six", scope=BRANCH)
    await shop.applied()
    sha = await shop.push(edited("app.py", 3))
    again = {
        "project": "shop",
        "branch": "main",
        "after": sha,
        "merged": ["feat/x"],
        "commits": [{"sha": sha, "subject": "close (#1)", "committed_at": NOW.isoformat()}],
        "files": [edited("app.py", 3)],
    }
    assert not (await stack.post("/v1/git/changes", again))["duplicate"]

    async def promoted() -> bool:
        return bool((await _memory(stack, own))["scope"] == "project/shop")

    await eventually(promoted)
    assert (await stack.post("/v1/git/changes", again))["duplicate"]
    await shop.applied()
    assert own not in await shop.stale(project="shop")
