"""Limits of spending, of requests that come at once, and of who may see what agents said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from reverie.domain.core.ids import new_id
from reverie.runtime.settings.field_types import require_secret, secret_text
from reverie.store.db.database import Database, open_database
from reverie.store.db.encryption import create_cipher
from reverie.store.engine.turns import ChainLimits, ClaimedTurn, NewTurns, TurnTable
from reverie.testing.chat_server import ChatAnswer, ToolUse
from tests.engine.conftest import Engine
from tests.support.stack import eventually
from tests.support.tables import TABLES, rows, value

NOTE = {"content": "Rows of a tenant are its own.", "kind": "context"}
IDLE = "select count(*) = 0 from reverie.engine_turn where tenant = %s and status = 'running'"

NONE = dict.fromkeys(
    f"{holder}_{unit}"
    for holder in ("tenant", "agent", "chain")
    for unit in ("tokens", "micro_usd")
)


@asynccontextmanager
async def _open_turns(engine: Engine) -> AsyncIterator[tuple[Database, TurnTable]]:
    settings = engine.service.settings
    url = require_secret(settings.database_url, "database_url")
    async with open_database(url, 8) as database:
        yield database, TurnTable(database, create_cipher(secret_text(settings.vault_key)), 60.0)


async def _claim(
    engine: Engine, turns: TurnTable, group: str, agents: list[str]
) -> list[ClaimedTurn]:
    """Turns of one message, held by a worker that does nothing with them."""
    tenant = (engine.stack.number(), engine.stack.tenant)
    new = NewTurns(agents, [new_id() for _ in agents])
    key, message = engine.stack.key, new_id()
    said: Any = ("user", "Hello.", [], new, key, ChainLimits(), {}, message)
    await turns.post(tenant, UUID(group), *said)
    claimed = [await turns.claim(*tenant, turn, "test") for turn in new.ids]
    return [turn for turn in claimed if isinstance(turn, ClaimedTurn)]


@pytest.mark.parametrize("limit", list(NONE))
async def test_requests_at_once_never_reserve_more_than_a_limit(engine: Engine, limit: str) -> None:
    """Of twelve that each reserve 30, three fit under 100."""
    async with _open_turns(engine) as (_, turns):
        group = await engine.group("beck")
        agents = ["beck"] * 12 if not limit.startswith("tenant") else [f"a{n}" for n in range(12)]
        held = await _claim(engine, turns, group, agents)
        limits = {**NONE, limit: 100}
        reserved = (turns.reserve(turn, 30, 30, limits) for turn in held)
        refused = [found for found in await asyncio.gather(*reserved) if found]
        assert refused == [limit] * 9
        # What is given back can be reserved again.
        await turns.count(held[0], -30, -30)
        assert await turns.reserve(held[0], 30, 30, limits) is None
        assert await turns.reserve(held[0], 30, 30, limits) == limit
        for turn in held:
            await turns.end(turn, "done", "end_turn", None, "")


async def test_turns_at_once_keep_the_budget_of_their_agent(engine: Engine) -> None:
    """Each request reserves a little more than the 4,096 tokens of an answer."""
    await engine.agent("frugal", budget={"tokens_per_day": 9_000})
    groups = [await engine.group("frugal") for _ in range(6)]
    released: list[bool] = []
    engine.play(lambda _: ChatAnswer("Done.", hold=lambda: bool(released)))
    posted = [await engine.post(group, "Hello.") for group in groups]

    async def count_refused() -> bool:
        logs = [await engine.log(group) for group in groups]
        return [log["turns"][0]["status"] for log in logs].count("failed") == 4

    await eventually(count_refused)
    assert len(engine.requests) == 2
    released.append(True)
    ended = [await engine.ended(*of) for of in zip(groups, posted, strict=True)]
    outcomes = sorted(turns["frugal"]["outcome"] for turns in ended)
    assert outcomes == ["end_turn"] * 2 + ["limit"] * 4
    spent = await engine.call("GET", "/v1/agents/spend")
    assert spent.body["agents"]["frugal"]["tokens"] == 240


async def test_money_is_reserved_before_a_request_and_settled_after_it(engine: Engine) -> None:
    await engine.agent("poor", models=["priced"], budget={"usd_per_day": 0.01})
    await engine.agent("rich", models=["priced"], budget={"usd_per_day": 1.0})
    engine.play(lambda _: ChatAnswer("Done."))
    group = await engine.group("rich", "poor")
    turns = await engine.say(group, "@poor Hello.")
    assert "agent_micro_usd" in turns["poor"]["error"]
    assert engine.requests == []
    turns = await engine.say(group, "@rich Hello.")
    assert turns["rich"]["status"] == "done"
    # 100 tokens at 1 and 20 at 5 dollars a million.
    assert (turns["rich"]["tokens"], turns["rich"]["micro_usd"]) == (120, 200)
    assert turns["rich"]["requests"] == 1
    engine.play(lambda _: ChatAnswer(fault="401"))
    turns = await engine.say(group, "@rich And again.")
    assert (turns["rich"]["tokens"], turns["rich"]["micro_usd"]) == (0, 0)
    spent = await engine.call("GET", "/v1/agents/spend")
    assert spent.body["agents"]["rich"] == {"tokens": 120, "micro_usd": 200}


async def test_nobody_of_another_tenant_reaches_a_group(engine: Engine) -> None:
    await engine.agent("own", ask=["write_file"])
    engine.play([ChatAnswer(calls=(ToolUse("write_file", {"path": "x", "content": "x"}),))])
    group = await engine.group("own")
    await engine.post(group, "Write it.")
    turn = await engine.turn(group, "own", "waiting")
    [call] = turn["waits"]
    key = engine.stack.apart().key
    path, decided = f"/v1/groups/{group}", {"turn": turn["id"], "call": call, "approved": True}
    for method, of, body in (
        ("GET", "messages", None),
        ("GET", "events", None),
        ("POST", "messages", {"text": "Hi."}),
        ("POST", "approvals", decided),
        ("POST", "stop", {}),
    ):
        reply = await engine.call(method, f"{path}/{of}", body, key=key)
        assert reply.status == 404, of
    assert (await engine.call("GET", "/v1/groups", key=key)).body["items"] == []
    agents = (await engine.call("GET", "/v1/agents", key=key)).body["items"]
    assert "own" not in {agent["name"] for agent in agents}
    assert (await engine.call("GET", "/v1/agents/spend", key=key)).body["agents"] == {}
    # Nor does a decision in a group of one's own reach a turn of another group.
    other = await engine.group("own")
    reply = await engine.call("POST", f"/v1/groups/{other}/approvals", decided)
    assert reply.status == 404
    assert (await engine.turn(group, "own", "waiting"))["id"] == turn["id"]
    await engine.call("POST", f"{path}/stop", {})
    await engine.turn(group, "own", "stopped")


async def test_row_level_security_hides_every_table_of_the_engine(engine: Engine) -> None:
    engine.play([ChatAnswer(calls=(ToolUse("remember", NOTE),)), ChatAnswer("Done.")])
    await engine.agent("own")
    image = {"media_type": "image/png", "data": "iVBORw0KGgo="}
    await engine.say(await engine.group("own"), "Remember it.", images=[image])
    own, other = engine.stack.number(), engine.stack.apart().number()
    names = [name for (name,) in rows(engine.stack.admin_url, TABLES, "reverie")]
    names = [name for name in names if name.startswith("engine_")]
    assert len(names) == 8
    url = require_secret(engine.service.settings.database_url, "database_url")
    connection = await asyncpg.connect(url)
    try:
        for name in names:
            for tenant, is_seen in ((own, True), (other, False)):
                async with connection.transaction():
                    await connection.execute("set local role reverie_app")
                    await connection.execute("select reverie.set_tenant($1)", tenant)
                    query = f"select count(*) from reverie.{name} where tenant = $1"
                    assert bool(await connection.fetchval(query, own)) == is_seen, name
    finally:
        await connection.close()


async def test_ten_clients_of_one_stream_see_the_same(engine: Engine) -> None:
    engine.play([ChatAnswer("one two three four five", thinking="well", seconds=0.2)])
    group = await engine.group("beck")
    posted = await engine.post(group, "Count.")
    first, *others = await asyncio.gather(
        *(engine.watch(group, posted["after"]) for _ in range(10))
    )
    assert [other == first for other in others] == [True] * 9
    assert first[-1]["data"]["content"] == "one two three four five"


NO_MESSAGES = (
    b"\xff\xfe",
    b"[]",
    b'{"text": 7}',
    b'{"text": ""}',
    b'{"text": "a", "mentions": ["../x"]}',
    b'{"text": "a", "mode": "root"}',
    b'{"text": "a", "files": {"x": 7}}',
    b'{"text": "a", "images": [{"media_type": "image/png", "data": "%%"}]}',
    b'{"text": "a", "images": [{"media_type": "text/html", "data": ""}]}',
    b'{"text": "a", "unknown": true}',
    b'{"text": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
)


async def test_a_body_that_is_no_message_is_refused(engine: Engine) -> None:
    group = await engine.group("beck")
    url = f"{engine.service.url}/v1/groups/{group}/messages"
    headers = {"Authorization": f"Bearer {engine.stack.key}", "Content-Type": "application/json"}
    for body in NO_MESSAGES:
        async with engine.stack.http.post(url, data=body, headers=headers) as answer:
            assert 400 <= answer.status < 500, (body[:80], await answer.text())
    assert (await engine.log(group))["items"] == []


async def test_characters_that_a_database_refuses_are_no_failure(engine: Engine) -> None:
    call = ToolUse("recall", {"question": "a\0b \ud800"})
    engine.play([ChatAnswer("a\0b", thinking="c\0d", calls=(call,)), ChatAnswer("e\0f \ud800")])
    group = await engine.group("beck")
    turns = await engine.say(group, "Hello.")
    assert turns["beck"]["status"] == "done"
    assert await engine.answers(group) == ["e\N{REPLACEMENT CHARACTER}f ?"]
    for body in ({"call": "\0"}, {"call": "x", "reason": "\0"}):
        decided = {"turn": turns["beck"]["id"], "approved": True, **body}
        reply = await engine.call("POST", f"/v1/groups/{group}/approvals", decided)
        assert reply.status < 500, reply


async def test_a_group_that_is_deleted_while_a_turn_runs_ends_it(engine: Engine) -> None:
    released: list[bool] = []
    engine.play([ChatAnswer("one two", hold=lambda: bool(released)), ChatAnswer("Still here.")])
    group = await engine.group("beck", project="shop-deleted")
    listed = (await engine.call("GET", "/v1/groups")).body["items"]
    scope = next(item["scope"] for item in listed if item["id"] == group)
    posted = await engine.post(group, "Hello.")
    await engine.watch(group, posted["after"], until="text_delta")
    gone = await engine.stack.call("DELETE", f"/v1/admin/scopes?scope={scope}")
    assert gone.status == 200, gone
    released.append(True)
    assert (await engine.call("GET", f"/v1/groups/{group}/messages")).status == 404

    async def is_idle() -> bool:
        return bool(value(engine.stack.admin_url, IDLE, engine.stack.number()))

    await eventually(is_idle)
    other = await engine.group("beck")
    await engine.say(other, "Are you there?")
    assert await engine.answers(other) == ["Still here."]
