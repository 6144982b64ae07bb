"""Commits of a clone are announced once, and stored in order while no gateway answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reverie.agent.git.announcement_log import (
    AnnouncementLog,
    AnnouncementOutcome,
    ChangeReceipt,
)
from reverie.agent.git.announcements import announce_new_commits, announce_push
from reverie.agent.git.change_builder import CommitRange
from reverie.agent.git.clone_watch import watch_clone
from reverie.domain.core.errors import Forbidden, InvalidInput, Unavailable
from tests.support.git_clone import NOON, Clone, new_clone, numbered


@dataclass
class Gateway:
    """What a gateway was sent; it may be away, or refuse a commit."""

    away: bool = False
    shut: bool = False
    refused: str = ""
    got: list[dict[str, Any]] = field(default_factory=list)

    async def send(self, document: dict[str, Any]) -> ChangeReceipt:
        if self.away:
            raise Unavailable("the gateway", "is it running?")
        if self.shut:
            raise Forbidden("write", "project/shop")
        if document["after"] == self.refused:
            raise InvalidInput("files", "too odd")
        known = any(one["after"] == document["after"] for one in self.got)
        self.got.append(document)
        return ChangeReceipt(known)

    @property
    def spans(self) -> list[tuple[str | None, str]]:
        return [(one.get("before"), one["after"]) for one in self.got]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    made = new_clone(tmp_path / "clone")
    made.commit("Begin", {"a.txt": numbered(9), "b.txt": numbered(9)})
    return made


async def follow(clone: Clone, gateway: Gateway, **how: Any) -> list[AnnouncementOutcome]:
    return await announce_new_commits(clone.repo, "shop", gateway.send, **how)


async def test_each_commit_is_announced_once_whoever_polls_and_on_any_branch(
    clone: Clone,
) -> None:
    gateway, begin = Gateway(), clone.repo.head_commit
    assert await follow(clone, gateway) == []
    first = clone.commit("First", {"a.txt": numbered(9, _1="x")})
    second = clone.commit("Second", {"a.txt": numbered(9, _2="x")})
    [outcome] = await follow(clone, gateway)
    assert (outcome.state, gateway.spans) == ("announced", [(begin, second)])
    assert await follow(clone, gateway) == []
    clone.git("switch", "-q", "-c", "feat/x", first)
    assert await follow(clone, gateway) == []
    third = clone.commit("Third", {"b.txt": numbered(9, _1="x")})
    await asyncio.gather(follow(clone, gateway), follow(clone, gateway))
    assert gateway.spans[1:] == [(first, third)]
    clone.git("commit", "-q", "--amend", "-m", "Third, better")
    amended = clone.repo.head_commit
    [told] = await follow(clone, gateway)
    assert (told.change.forced, told.change.before, told.change.files) == (True, third, [])
    clone.git("switch", "-q", "main")
    assert await follow(clone, gateway) == []
    clone.git("checkout", "-q", "--detach")
    assert await follow(clone, gateway) == []
    clone.git("switch", "-q", "feat/x")
    ends = CommitRange("feat/x", amended, clone.commit("Fourth", {"b.txt": numbered(9, _2="x")}))
    await announce_push(clone.repo, "shop", ends, gateway.send)
    assert await follow(clone, gateway) == []
    assert [one.state for one in [await announce_push(clone.repo, "shop", ends, gateway.send)]] == [
        "duplicate"
    ]


async def test_a_session_start_announces_commits_since_the_last_session(clone: Clone) -> None:
    gateway, begin = Gateway(), clone.repo.head_commit
    last = clone.commit("Later", {"a.txt": numbered(9, _1="x")})
    since = clone.at.replace(minute=0) - (clone.at - NOON) / 4
    [outcome] = await follow(clone, gateway, since=since)
    assert (outcome.change.before, outcome.change.after) == (begin, last)
    assert await follow(clone, gateway, since=since) == []
    assert not (clone.root / "reverie").exists()
    assert clone.git("status", "--porcelain") == ""


async def test_undelivered_announcements_are_sent_first_and_in_order(clone: Clone) -> None:
    gateway = Gateway()
    await follow(clone, gateway)
    gateway.away = True
    made = []
    for number in (1, 2, 3):
        made.append(clone.commit("More", {"a.txt": numbered(9, _1=f"x{number}")}))
        [outcome] = await follow(clone, gateway)
        assert (outcome.state, "is it running" in outcome.reason) == ("queued", True)
    ledger = AnnouncementLog(clone.repo)
    assert len(ledger.spooled_files()) == 3
    gateway.away, gateway.refused = False, made[1]
    made.append(clone.commit("Last", {"a.txt": numbered(9, _1="last")}))
    await follow(clone, gateway)
    assert [after for _, after in gateway.spans] == [made[0], made[2], made[3]]
    assert ledger.spooled_files() == []


async def test_uncommitted_edits_are_announced_as_they_grow_and_not_repeated_by_the_commit(
    clone: Clone,
) -> None:
    gateway, head = Gateway(), clone.repo.head_commit
    assert await follow(clone, gateway, include_edits=True) == []
    clone.write({"a.txt": numbered(9, _2="two")})
    [first] = await follow(clone, gateway, include_edits=True)
    assert (first.change.uncommitted, first.change.before) == (True, head)
    assert [h.line_ranges for h in first.change.files[0].hunks] == [(2, 1, 2, 1)]
    assert await follow(clone, gateway, include_edits=True) == []
    clone.write({"a.txt": numbered(9, _2="two", _7="seven")})
    [second] = await follow(clone, gateway, include_edits=True)
    assert [h.line_ranges for h in second.change.files[0].hunks] == [(7, 1, 7, 1)]
    assert second.change.before == first.change.after
    assert clone.git("stash", "list") == ""
    commit = clone.commit("Both", {"b.txt": numbered(9, _4="four")})
    [third] = await follow(clone, gateway, include_edits=True)
    assert (third.change.before, third.change.after, third.change.forced) == (head, commit, False)
    assert [(f.path, [h.line_ranges for h in f.hunks]) for f in third.change.files] == [
        ("b.txt", [(4, 1, 4, 1)])
    ]
    clone.write({"a.txt": numbered(9)})
    [fourth] = await follow(clone, gateway, include_edits=True)
    clone.git("checkout", "-q", "a.txt")
    [back] = await follow(clone, gateway, include_edits=True)
    assert back.change.files[0].new_blob == fourth.change.files[0].old_blob
    assert await follow(clone, gateway, include_edits=True) == []


async def test_watching_wakes_for_commits_and_optionally_for_files(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.agent.git.clone_watch.POLL_INTERVAL_MS", 60_000)
    async with aclosing(watch_clone(clone.repo, include_edits=True)) as looks:
        await anext(looks)
        await _woken(looks, lambda n: clone.write({"a.txt": f"{n}\n"}))
        await _woken(looks, lambda n: clone.commit(f"Number {n}"))


async def test_watching_polls_when_no_file_event_arrives(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.agent.git.clone_watch.POLL_INTERVAL_MS", 50)
    async with aclosing(watch_clone(clone.repo, include_edits=False)) as looks:
        for _ in range(3):
            await anext(looks)


async def _woken(looks: AsyncIterator[None], change: Callable[[int], object]) -> None:
    """Changes something until the watch wakes: it begins a moment after it is asked."""
    waiting = asyncio.ensure_future(anext(looks))
    for number in range(30):
        change(number)
        done, _ = await asyncio.wait([waiting], timeout=1)
        if done:
            return
    raise AssertionError("nothing was noticed")


async def test_queued_announcements_survive_a_wrong_key_and_a_refusal_is_reported(
    clone: Clone,
) -> None:
    gateway = Gateway()
    await follow(clone, gateway)
    gateway.away = True
    odd = clone.commit("Odd", {"a.txt": numbered(9, _1="x")})
    assert (await follow(clone, gateway))[0].state == "queued"
    gateway.away, gateway.shut = False, True
    clone.commit("Next", {"a.txt": numbered(9, _2="x")})
    with pytest.raises(Forbidden):
        await follow(clone, gateway)
    gateway.shut, gateway.refused = False, odd
    [outcome] = await follow(clone, gateway)
    assert outcome.state == "announced"
    assert [(one.after, "too odd" in one.reason) for one in outcome.refused] == [(odd[:12], True)]
