"""One tenant's key on another tenant's data, through every route and the bus.

The routes are read from the services. Variables of a path and well-known parameters are filled
with what belongs to the other tenant, and bodies by `build_bodies`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest

from reverie.bus.dead_letters import list_dead_letters
from reverie.bus.erasure import tenant_subjects
from reverie.bus.interface import MessageBus
from reverie.bus.nats_bus import connect
from reverie.bus.streams import INGEST_ENRICH, STALENESS_CHANGES, ConsumerSpec
from reverie.contracts.events import git_subject
from reverie.domain.access.principals import KeyRole
from reverie.runtime.http.pagination import IdCursor, encode_cursor
from reverie.runtime.http.routes import Route
from reverie.store.platform.api_keys import list_keys
from reverie.store.platform.event_visibility import CursorCipher
from reverie_services.ingest.routes.events import EVENT_CURSOR_PURPOSE
from tests.security.foreign_bodies import SAME, WORD, Theirs, build_bodies, change_files
from tests.support.stack import Reply, Stack, eventually
from tests.support.tables import Tables, value

PARAMETERS: dict[str, Callable[[Theirs], list[str]]] = {
    "session": lambda of: [of.session],
    "project": lambda of: ["shop"],
    **dict.fromkeys(("scope", "scopes"), lambda of: ["project/shop", of.scope]),
    **dict.fromkeys(("path", "files"), lambda of: ["src/wren.py"]),
    "tag": lambda of: [WORD],
    **dict.fromkeys(("collection", "prefix"), lambda of: [WORD]),
    "key": lambda of: ["carts"],
    **dict.fromkeys(("agent", "actor"), lambda of: ["ann"]),
    "subject": lambda of: [of.memory],
    "entity": lambda of: [WORD],
    "topic": lambda of: ["birds"],
    "cursor": lambda of: [encode_cursor(IdCursor(id=UUID(of.memory))), of.place],
    "after": lambda of: [of.place],
}
PLAIN = {
    *("as_of", "include_descendants", "budget_tokens", "claimable", "depth", "dry_run", "event"),
    *("fan_out", "format", "include", "kind", "limit", "profile", "state", "status"),
    *("strategy", "valid_at", "action", "changes", "restore", "since", "steps", "until"),
    "order",
}
"""Parameters that name nothing which belongs to somebody."""
REPEATS = {"GET /v1/traces": "POST /v1/recall"}
"""Lists of what the caller itself sent before, to that route."""
ENDLESS = {"GET /v1/events"}
UNKNOWN = "takes a parameter: add to PARAMETERS what names another's in it, or to PLAIN"


async def _theirs(stack: Stack, tenant: str) -> Theirs:
    """A tenant that has some of everything."""
    key = stack.key_of(tenant=tenant, role=KeyRole.ADMIN)
    start = {"agent": "ann", "project": "shop", "external_id": "chat"}
    session = (await stack.post("/v1/sessions/start", start, key=key))["session"]
    turn = {"role": "user", "content": f"we chose {WORD} turn"}
    await stack.post("/v1/turns", {"session": session, "turns": [turn]}, key=key)
    scope = "project/shop/topic/birds"
    document = {"key": WORD, "value": WORD}
    await stack.post("/v1/documents", {"collection": WORD, "documents": [document]}, key=key)
    body = {"content": f"{WORD} nests in src/wren.py", "scope": scope, "pinned": True}
    memory = (await stack.post("/v1/remember", {**body, "tags": [WORD]}, key=key))["id"]
    same = {"content": SAME, "scope": "project/shop", "key": "carts"}
    await stack.post("/v1/remember", same, key=key)
    found = await stack.post("/v1/recall", {"query": WORD}, key=key)
    assert memory in {one["id"] for one in found["memories"]}
    trace = await stack.get(f"/v1/traces/{found['trace_id']}", key=key)
    assert memory in {one["id"] for one in trace["candidates"]}
    [change] = change_files(None)  # type: ignore[arg-type]
    event = (await stack.post("/v1/git/changes", change, key=key))["event"]
    await stack.call("PUT", "/v1/vault/shop", {"value": WORD}, key)
    [made] = [one.id for one in list_keys(stack.admin_url) if one.tenant == tenant]
    place = _beginning(stack, tenant)
    return Theirs(tenant, memory, session, made, event, found["trace_id"], scope, place)


def _filled(route: Route, of: Theirs) -> Iterator[str]:
    """The path with each of the ids in it, and with each parameter that names something."""
    head, brace, tail = route.path.partition("{")
    variable, _, rest = tail.partition("}")
    for one in (of.ids if variable == "id" else ["shop"]) if brace else [""]:
        path = head + one + rest
        fields = set(route.query.model_fields if route.query else ())
        assert fields <= PLAIN | set(PARAMETERS), f"{route.name} {UNKNOWN}"
        named = sorted(fields & set(PARAMETERS))
        yield path
        yield from (f"{path}?{name}={v}" for name in named for v in PARAMETERS[name](of))


def _asked(route: Route, of: Theirs) -> list[tuple[str, Any]]:
    if route.method == "GET" or (route.body is None and not route.streaming):
        return [(path, None) for path in _filled(route, of)]
    return list(product(_filled(route, of), build_bodies(route.name, of)))


def _echoed(text: str, sent: str) -> str:
    """What was said, less the words that the caller sent."""
    for word in sent.replace("?", "/").replace("=", "/").split("/"):
        text = text.replace(word, "") if len(word) > 3 else text
    return text


def _leaks(reply: Reply, of: Theirs, path: str, body: Any) -> list[str]:
    said = _echoed(json.dumps([reply.body, reply.headers], default=str), path)
    sent = json.dumps(body)
    return [mark for mark in of.marks if mark in said and mark not in sent]


@pytest.fixture
async def theirs(alone: Stack) -> Theirs:
    made = await _theirs(alone, "zanzibar")
    with closing(Tables(alone.admin_url)) as tables:
        await eventually(lambda: _idle(tables))
    await eventually(lambda: _used(alone))
    return made


async def _used(stack: Stack) -> bool:
    """What was recalled is noted a moment after the answer."""
    return bool(value(stack.admin_url, "select count(*) from memory_use"))


async def _idle(tables: Tables) -> bool:
    return tables.idle()


def _number(stack: Stack, tenant: str) -> int:
    return int(value(stack.admin_url, "select id from tenant where name = %s", tenant))


def _counts(stack: Stack, tenant: str) -> dict[str, int]:
    with closing(Tables(stack.admin_url, _number(stack, tenant))) as tables:
        return tables.counts()


async def test_no_route_shows_changes_or_reveals_anything_of_another_tenant(
    alone: Stack, nats_url: str, theirs: Theirs
) -> None:
    mine = alone.key_of(tenant="madagascar", role=KeyRole.ADMIN)
    before = _counts(alone, theirs.tenant)
    nothing = str(uuid4())
    for service, routes in alone.routes.items():
        for route in routes:
            for path, body in _asked(route, theirs):
                url, more = alone.urls[service] + path, _sent_as(route, body)
                reply = await _reply(alone, route, url, mine, more)
                assert reply.status < 500, (route.name, path, reply)
                repeated = REPEATS.get(route.name)
                sent = [body, build_bodies(repeated, theirs)] if repeated else body
                assert _leaks(reply, theirs, path, sent) == [], (route.name, path, reply)
                if theirs.memory in path:
                    other = url.replace(theirs.memory, nothing)
                    unknown = await alone.call(route.method, other, key=mine, **more)
                    assert reply.status == unknown.status, (route.name, path)
    assert _counts(alone, theirs.tenant) == before
    await _forged(nats_url, _number(alone, "madagascar"), _number(alone, theirs.tenant), theirs)
    with closing(Tables(alone.admin_url)) as tables:
        await eventually(lambda: _idle(tables))
    assert _counts(alone, theirs.tenant) == before
    assert await _said_on_the_bus(nats_url, "madagascar", theirs) == []


async def _reply(stack: Stack, route: Route, url: str, key: str, more: dict[str, Any]) -> Reply:
    """What comes back; of a stream that does not end, what stands in it so far."""
    if route.path == "/v1/export":
        async with stack.http.get(url, headers={"Authorization": f"Bearer {key}"}) as answer:
            return Reply(answer.status, await answer.text(), dict(answer.headers))
    if route.name not in ENDLESS:
        return await stack.call(route.method, url, key=key, **more)
    headers = {"Authorization": f"Bearer {key}", "Last-Event-ID": _beginning(stack, "madagascar")}
    heard = b""
    async with stack.http.get(url, headers=headers) as answer:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                async for chunk in answer.content.iter_any():
                    heard += chunk
        return Reply(answer.status, heard.decode(), dict(answer.headers))


def _beginning(stack: Stack, tenant: str) -> str:
    """The place of a tenant before all events."""
    key = value(stack.admin_url, "select cursor_key from tenant where name = %s", tenant)
    return CursorCipher(key).encrypt(EVENT_CURSOR_PURPOSE, 0)


def _sent_as(route: Route, body: Any) -> dict[str, Any]:
    """A stream takes lines of JSON; a message of MCP is one."""
    if route.path == "/mcp":
        return {"json": body}
    if body is None or not route.streaming:
        return {"json": body}
    return {"data": json.dumps(body) + "\n", "headers": {"Content-Type": "application/x-ndjson"}}


FORGED = "forged"


async def _forged(nats_url: str, mine: int, other: int, theirs: Theirs) -> None:
    """Messages on the subjects of one tenant that speak of another's memory and change."""
    remembered, changed = "memory.madagascar.remembered", git_subject("madagascar", "shop")
    async with connect(nats_url, "test") as bus:
        await bus.wait_connected(30)
        for tenant in (mine, other):
            memory = {"v": 1, "tenant": tenant, "id": theirs.memory, "version": 99}
            change = {"v": 1, "tenant": tenant, "id": theirs.change, "project": "shop"}
            for subject, body in ((remembered, memory), (changed, change)):
                await bus.send(subject, json.dumps(body).encode(), {FORGED: "yes"})
        for consumer in (INGEST_ENRICH, STALENESS_CHANGES):
            await eventually(partial(_taken, bus, consumer))
        dead = await list_dead_letters(bus)
    assert [one.reason for one in dead] == [
        "its body speaks of another tenant than its subject"
    ] * 2, dead


async def _taken(bus: MessageBus, consumer: ConsumerSpec) -> bool:
    return await bus.lag(consumer) == 0


async def _said_on_the_bus(nats_url: str, tenant: str, theirs: Theirs) -> list[str]:
    """The messages under a tenant's subjects that name what is another's."""
    async with connect(nats_url, "test") as bus:
        await bus.wait_connected(30)
        return [
            said
            for stream, subject in tenant_subjects(tenant)
            for said in await _all(bus, stream, subject)
            if any(mark in said for mark in theirs.marks)
        ]


async def _all(bus: MessageBus, stream: str, subject: str) -> list[str]:
    found, after = [], 0
    while one := await bus.read(stream, after + 1, subject):
        if FORGED not in one.headers:
            found.append(f"{one.subject} {one.data.decode()} {dict(one.headers)}")
        after = one.seq
    return found
