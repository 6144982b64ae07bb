"""`GET /v1/events`: server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from reverie.bus.nats_bus import connect
from reverie.contracts.events import MEMORY_STREAM
from reverie.store.platform.api_keys import NewApiKey, create_key
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Stack, eventually, running_stack


@dataclass
class Watcher:
    """An open stream; `place` is the id of the last block, as a browser keeps it."""

    answer: aiohttp.ClientResponse
    place: str = ""
    seen: list[dict[str, Any]] = field(default_factory=list)
    first: dict[str, str] = field(default_factory=dict)

    async def block(self) -> dict[str, str] | None:
        """The fields of the next block; None at the end of the stream."""
        found: dict[str, str] = {}
        async with asyncio.timeout(60):
            while line := (await self.answer.content.readline()).decode():
                if line == "\n":
                    self.place = found.get("id", self.place)
                    return found
                name, _, value = line.rstrip("\n").partition(": ")
                found[name] = value
        return None

    async def event(self) -> dict[str, Any]:
        """The data of the next event."""
        while True:
            found = await self.block()
            assert found is not None, "the stream ended"
            if "data" in found:
                self.seen.append(json.loads(found["data"]))
                return self.seen[-1]

    async def until(self, event: str, memory: str) -> dict[str, Any]:
        """The event of that name of a memory."""
        while True:
            found = await self.event()
            if (found["event"], found.get("id")) == (event, memory):
                return found


@asynccontextmanager
async def _watching(
    stack: Stack, query: str = "", key: str | None = None, after: str | None = None
) -> AsyncIterator[Watcher]:
    headers = {"Authorization": f"Bearer {key or stack.key}"}
    if after is not None:
        headers["Last-Event-ID"] = after
    url = f"{stack.url}/v1/events{query}"
    async with stack.http.get(url, headers=headers, timeout=aiohttp.ClientTimeout()) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.content_type == "text/event-stream"
        watcher = Watcher(answer)
        watcher.first = await watcher.block() or {}
        yield watcher


async def _remember(stack: Stack, content: str, **fields: Any) -> str:
    return str((await stack.post("/v1/remember", {"content": content, **fields}))["id"])


async def test_a_watcher_that_reconnects_misses_nothing_and_sees_nothing_twice(
    stack: Stack,
) -> None:
    made: list[str] = []
    seen: list[str] = []
    async with _watching(stack, "?event=remembered") as watcher:
        first = watcher.place
        made += [await _remember(stack, f"Shelf {number} holds apples") for number in range(4)]
        seen += [(await watcher.event())["id"] for _ in range(2)]
        place = watcher.place
    made += [await _remember(stack, f"Shelf {number} holds apples") for number in range(4, 7)]
    async with _watching(stack, "?event=remembered", after=place) as watcher:
        seen += [(await watcher.event())["id"] for _ in range(len(made) - 2)]
        place = watcher.place
        made.append(await _remember(stack, "The last shelf holds pears"))
        seen.append((await watcher.event())["id"])
    assert sorted(seen) == sorted(made)
    async with _watching(stack, f"?event=remembered&after={place}") as watcher:
        assert (await watcher.event())["id"] == made[-1]
    began, place = (await stack.get("/v1/events/page"))["next"], first
    paged: list[Any] = []
    more = True
    while more:
        page = await stack.get(f"/v1/events/page?event=remembered&limit=3&after={place}")
        paged, place, more = [*paged, *page["items"]], page["next"], page["has_more"]
    assert [one["data"]["id"] for one in paged] == seen
    assert {one["event"] for one in paged} == {"remembered"}
    for late in (place, began):
        page = await stack.get(f"/v1/events/page?event=remembered&after={late}")
        assert (page["items"], page["has_more"], page["gap"]) == ([], False, False)
    for wrong in ("0", "abc", "é", "1" * 30, "A" * 48, place[:-1] + "~", place[::-1]):
        in_header: dict[str, Any] = {"headers": {"Last-Event-ID": wrong}}
        for sent in (in_header, {"params": {"after": wrong}}):
            refused = await stack.call("GET", "/v1/events", **sent)
            assert (refused.status, refused.body["code"]) == (422, "invalid"), refused
            assert refused.body["field"] in {"Last-Event-ID", "after"}
    unknown = await stack.call("GET", "/v1/events?event=exploded")
    assert (unknown.status, unknown.body["field"]) == (422, "event")


async def test_a_change_of_a_file_is_reported_for_each_memory_followed_by_later_events(
    stack: Stack,
) -> None:
    async with _watching(stack) as watcher:
        place = watcher.place
        made = [
            await _remember(stack, f"src/till.py rounds {what}", scope="project/till")
            for what in ("prices down", "discounts up")
        ]
        for _ in made:
            while (await watcher.event())["event"] != "enriched":
                continue
        commit = {"sha": "4e1d9c2a", "committed_at": "2030-01-01T00:00:00Z"}
        change = {"project": "till", "branch": "main", "after": "4e1d9c2a", "commits": [commit]}
        files = [{"path": "src/till.py", "status": "deleted"}]
        await stack.post("/v1/git/changes", {**change, "files": files})
        while sum(one["event"] == "staled" for one in watcher.seen) < len(made):
            await watcher.event()
        assert {one["version"] for one in watcher.seen if one["event"] == "staled"} == {1}
    async with _watching(stack, "?event=staled&event=remembered", after=place) as watcher:
        later = await _remember(stack, "The shop opens at nine")
        await watcher.until("remembered", later)
        told = sorted(one["id"] for one in watcher.seen if one["event"] == "staled")
        assert told == sorted(made)


async def test_a_cursor_reveals_nothing_of_other_tenants_and_is_valid_for_its_own_only(
    alone: Stack, nats_url: str
) -> None:
    stranger = create_key(alone.admin_url, NewApiKey("stranger", tenant="strangers"))
    before: list[str] = []
    for number in range(3):
        await _remember(alone, f"The count stands at {number} now")
        await alone.settled()
        async with _watching(alone, key=stranger) as quiet:
            before.append(quiet.place)
    assert len(set(before)) == 3
    assert {len(place) for place in before} == {48}
    assert not any(place.isdigit() for place in before)
    head = {"Last-Event-ID": before[0]}
    assert (await alone.call("GET", "/v1/events", headers=head)).status == 422
    async with connect(nats_url, "test") as bus:
        await bus.wait_connected(30)
        await bus.purge(MEMORY_STREAM, "memory.>")
    async with _watching(alone, key=stranger, after=before[0]) as late:
        assert late.first == {"event": "reset", "data": "{}", "id": late.place}


async def test_a_watcher_receives_what_its_key_may_read_and_what_it_asked_for(stack: Stack) -> None:
    narrow = stack.key_of(reads=("project/a",), writes=("project/a",))
    stranger = stack.apart().key
    async with (
        _watching(stack, key=narrow) as mine,
        _watching(stack, key=stranger) as strange,
        _watching(stack, "?scope=project/a&kind=task&event=task&event=forgotten") as tasks,
    ):
        hidden = await _remember(stack, "The vault code changes weekly", scope="project/b")
        note = await _remember(stack, "The shop sells apples and pears", scope="project/a")
        task = await _remember(stack, "Paint the shop", scope="project/a", kind="task")
        await stack.post(f"/v1/tasks/{task}/claim", {"agent": "ann"})
        link = {"from": note, "to": task, "type": "relates_to"}
        await stack.post("/v1/links", link)
        across = {"from": note, "to": hidden, "type": "relates_to"}
        await stack.post("/v1/links", across)
        for memory in (task, note):
            reply = await stack.call("DELETE", f"/v1/memories/{memory}")
            assert reply.status < 300, reply
        told = await tasks.until("forgotten", task)
        assert [one["event"] for one in tasks.seen] == ["task", "forgotten"]
        assert (told["scope"], told["kind"]) == ("project/a", "task")
        await mine.until("forgotten", note)
        linked = [one for one in mine.seen if one["event"] == "linked"]
        assert [(one["from"], one["to"]) for one in linked] == [(note, task)]
        text = json.dumps(mine.seen)
        assert hidden not in text
        assert "apples" not in text
        assert "tenant" not in text
        other = await stack.post("/v1/remember", {"content": "Ours alone"}, key=stranger)
        await strange.until("remembered", other["id"])
        assert {one["id"] for one in strange.seen} == {other["id"]}
    refused = await stack.call("GET", "/v1/events?scope=project/b", key=narrow)
    assert refused.status == 403


async def test_watchers_are_limited_by_key_tenant_and_service_and_end_with_the_service(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with running_stack(database, nats_url, model_home(), max_event_watchers=8) as stack:

        async def watch(key: str, count: int) -> list[int]:
            headers = {"Authorization": f"Bearer {key}"}
            answers = [
                await streams.enter_async_context(
                    stack.http.get(f"{stack.url}/v1/events", headers=headers)
                )
                for _ in range(count)
            ]
            return [answer.status for answer in answers]

        async def is_freed() -> bool:
            return (await watch(stack.key, 1)) == [200]

        other = create_key(stack.admin_url, NewApiKey("else", tenant="elsewhere"))
        async with AsyncExitStack() as streams:
            assert await watch(stack.key, 3) == [200, 200, 503]
            for _ in range(2):
                assert await watch(stack.key_of(), 2) == [200, 200]
            assert await watch(stack.key_of(), 1) == [503]
            assert await watch(other, 2) == [200, 200]
            full = await stack.call("GET", "/v1/events")
            assert full.status == 503
            assert "8 clients watch already (max_event_watchers: 8)" in full.body["detail"]
            assert int(full.headers["Retry-After"]) >= 1
        async with AsyncExitStack() as streams:
            await eventually(is_freed)
        http = aiohttp.ClientSession(headers={"Authorization": f"Bearer {other}"})
        left = await http.get(f"{stack.url}/v1/events")
    async with asyncio.timeout(60), http:
        await left.read()
