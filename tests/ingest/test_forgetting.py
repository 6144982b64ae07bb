"""Archiving, forgetting and erasing: what remains of a memory at which interface and table."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg import sql

from reverie.contracts.memories.edits import MAX_FORGOTTEN
from reverie.domain.access.principals import KeyRole
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.import_files import send_import
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import rows, run, value

SCOPE = "project/shop"
PHONE = "The warehouse manager Quentin Abernathy answers at 0171 5550142"
COLUMNS = """
select c.relname, a.attname from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type t on t.oid = a.atttypid
where c.relnamespace = %s::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
  and (t.typcategory in ('S', 'A') or t.typname in ('json', 'jsonb', 'bytea', 'tsvector'))
"""


@pytest.fixture(name="clocked")
async def _clocked(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    async with running_stack(database, nats_url, model_home(), scheduler_interval=0.2) as made:
        yield made


async def _remember(stack: Stack, content: str = PHONE, **fields: Any) -> str:
    """The id of a memory that has been enriched."""
    body = {"content": content, "scope": SCOPE, **fields}
    memory = str((await stack.post("/v1/remember", body))["id"])
    await stack.settled()
    return memory


def _now() -> str:
    return datetime.now(UTC).isoformat()


async def _exported(stack: Stack) -> str:
    url, headers = f"{stack.url}/v1/export?format=jsonl", {"Authorization": f"Bearer {stack.key}"}
    async with stack.http.get(url, headers=headers) as answer:
        assert answer.status == 200
        return await answer.text()


async def _answers(
    stack: Stack, memory: str, near: str, trace: str, moments: list[str]
) -> dict[str, str]:
    """What each interface says about a memory, now and as of some moments."""
    said = {
        "list": await stack.get(f"/v1/memories?scope={SCOPE}&status=active&status=archived"),
        "context": await stack.get("/v1/context?project=shop"),
        "summaries": await stack.get("/v1/dream/summaries"),
        "near": await stack.get(f"/v1/memories/{near}"),
        "trace": (await stack.call("GET", f"/v1/traces/{trace}")).body,
        "history": (await stack.call("GET", f"/v1/memories/{memory}/history")).body,
        "provenance": (await stack.call("GET", f"/v1/memories/{memory}/provenance")).body,
        "export": await _exported(stack),
    }
    for moment in (None, *moments):
        at, query = ({"as_of": moment}, f"?as_of={moment}") if moment else ({}, "")
        query = query.replace("+", "%2B")
        question = {"query": "Quentin Abernathy warehouse manager", **at}
        said |= {
            f"recall {moment}": await stack.post("/v1/recall", {**question, "include": ["turns"]}),
            f"get {moment}": (await stack.call("GET", f"/v1/memories/{memory}{query}")).body,
            f"short {moment}": (await stack.call("GET", f"/v1/memories/{memory[-8:]}{query}")).body,
            f"around {moment}": (await stack.call("GET", f"/v1/memories/{near}{query}")).body,
            f"graph {moment}": (
                await stack.call("GET", f"/v1/memories/{near}/subgraph{query}")
            ).body,
        }
    return {name: json.dumps(body) for name, body in said.items()}


async def _is_traced(stack: Stack, trace: str) -> bool:
    return (await stack.call("GET", f"/v1/traces/{trace}")).status == 200


def _holding(admin_url: str, text: str) -> list[str]:
    """The columns of all tables that hold a text, as text or as bytes."""
    with closing(psycopg.connect(admin_url, autocommit=True)) as connection:
        schema = "reverie"
        columns = connection.execute(COLUMNS, (schema,)).fetchall()
        assert len(columns) > 150
        found = []
        for table, column in columns:
            query = sql.SQL(
                "select count(*) from {}.{} where position(%s in {}::text) > 0"
                " or position(%s in {}::text) > 0"
            ).format(
                *(sql.Identifier(schema), sql.Identifier(table)),
                *(sql.Identifier(column), sql.Identifier(column)),
            )
            [[count]] = connection.execute(query, (text, text.encode().hex())).fetchall()
            found += [f"{table}.{column}"] * bool(count)
        return found


async def test_a_memory_that_is_put_away_is_found_only_when_asked_for(stack: Stack) -> None:
    memory = await _remember(stack)
    question = {"query": "who is the warehouse manager?", "scopes": [SCOPE]}
    done = await stack.post(f"/v1/memories/{memory}/archive", None)
    assert (done["version"], done["changed"]) == (2, True)
    assert (await stack.post("/v1/recall", question))["memories"] == []
    asked = await stack.post("/v1/recall", {**question, "include": ["archived"]})
    assert [(hit["id"], hit["status"]) for hit in asked["memories"]] == [(memory, "archived")]
    again = await stack.post(f"/v1/memories/{memory}/archive", None)
    assert (again["version"], again["changed"]) == (2, False)
    back = await stack.post(f"/v1/memories/{memory}/restore", None)
    assert (back["version"], back["status"]) == (3, "active")
    assert [hit["id"] for hit in (await stack.post("/v1/recall", question))["memories"]] == [memory]
    versions = (await stack.get(f"/v1/memories/{memory}/history"))["items"]
    assert [(one["status"], one["reason"]) for one in versions] == [
        ("active", "restored from the archive"), ("archived", "archived"), ("active", "remembered"),
    ]  # fmt: skip
    await stack.post("/v1/remember", {"content": "Someone else", "scope": SCOPE, "key": "manager"})
    newer = {"content": "Nobody at all", "scope": SCOPE, "key": "manager"}
    replaced = await stack.post("/v1/remember", {**newer, "supersede_reason": "it closed"})
    [old] = (await stack.get(f"/v1/memories?status=superseded&scope={SCOPE}"))["items"]
    refused = await stack.call("POST", f"/v1/memories/{old['id']}/archive")
    assert (refused.status, replaced["status"]) == (409, "superseded")


async def test_a_forgotten_memory_is_in_no_answer_as_of_any_moment(stack: Stack) -> None:
    near = await _remember(stack, "Deliveries are handed over at gate four", kind="context")
    edges = [{"to": near, "type": "relates_to"}]
    first = await _remember(stack, f"{PHONE}, they say", kind="decision", edges=edges)
    before = _now()
    body = {"content": PHONE, "summary": PHONE, "reason": "it is certain"}
    assert (await stack.call("PATCH", f"/v1/memories/{first}", body)).status == 200
    moments = [before, _now()]
    trace = (await stack.post("/v1/recall", {"query": "who is the warehouse manager?"}))["trace_id"]
    await eventually(lambda: _is_traced(stack, trace))
    told = await _answers(stack, first, near, trace, moments)
    silent = {name for name, text in told.items() if "Abernathy" not in text}
    assert silent == {"summaries", "provenance"}
    gone, again = [await stack.call("DELETE", f"/v1/memories/{first}") for _ in "ab"]
    assert again.status == 404
    until = datetime.fromisoformat(gone.body["restorable_until"])
    assert 29 <= (until - datetime.now(UTC)).days <= 30
    moments.append(_now())
    told = await _answers(stack, first, near, trace, moments)
    assert [name for name, text in told.items() if "0171" in text] == []
    assert [name for name, text in told.items() if first in text and "not_found" not in text] == []
    again = await stack.post("/v1/remember", {"content": PHONE, "scope": SCOPE})
    assert (again["status"], again["id"] != first) == ("created", True)
    reader = stack.key_of(role=KeyRole.READER)
    assert (await stack.call("POST", f"/v1/memories/{first}/restore", key=reader)).status == 403


async def test_forgetting_is_undone_with_edges_doubt_words_and_vectors(stack: Stack) -> None:
    near = await _remember(stack, "Deliveries are handed over at gate four")
    memory = await _remember(stack, edges=[{"to": near, "type": "led_to"}], key="manager")
    assert (await stack.call("DELETE", f"/v1/memories/{memory}")).status == 200
    assert (await stack.call("POST", f"/v1/memories/{near}/restore")).status == 409
    back = await stack.post(f"/v1/memories/{memory[-8:]}/restore", None)
    assert (back["id"], back["version"], back["status"]) == (memory, 3, "active")
    shown = await stack.get(f"/v1/memories/{memory}")
    assert (shown["content"], shown["key"]) == (PHONE, "manager")
    linked = [(one["id"], one["type"]) for one in shown["neighbours"] if one["type"] == "led_to"]
    assert linked == [(near, "led_to")]

    async def found_by_meaning() -> bool:
        answer = await stack.post("/v1/recall", {"query": PHONE, "scopes": [SCOPE]})
        return {"words", "meaning"} <= set(answer["memories"][0]["arms"])

    await eventually(found_by_meaning)
    assert (await stack.call("POST", f"/v1/memories/{memory}/restore")).status == 409
    assert (await stack.call("DELETE", f"/v1/memories/{memory}")).status == 200
    await stack.post("/v1/remember", {"content": "Nobody", "scope": SCOPE, "key": "manager"})
    taken = await stack.call("POST", f"/v1/memories/{memory}/restore")
    assert (taken.status, taken.body["code"]) == (409, "conflict")


async def test_an_edge_of_two_forgotten_memories_returns_with_the_second(stack: Stack) -> None:
    near = await _remember(stack, "The pallets wait at the gate")
    memory = await _remember(stack, edges=[{"to": near, "type": "led_to"}])
    for first, second in ((memory, near), (near, memory)):
        for one in (memory, near):
            assert (await stack.call("DELETE", f"/v1/memories/{one}")).status == 200
        for one in (first, second):
            await stack.post(f"/v1/memories/{one}/restore", None)
        shown = await stack.get(f"/v1/memories/{memory}")
        assert [one["id"] for one in shown["neighbours"] if one["type"] == "led_to"] == [near]


async def _dreamt(stack: Stack, *said: str) -> tuple[str, list[dict[str, Any]]]:
    start = {"agent": "ann", "project": "shop"}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    turns = [{"role": "user", "content": text} for text in said]
    await stack.post("/v1/turns", {"session": session, "turns": turns})
    await stack.post(f"/v1/sessions/{session}/end", None)

    async def dreamt() -> list[dict[str, Any]]:
        runs = (await stack.get(f"/v1/dreams?scope={SCOPE}"))["items"]
        found = (await stack.get(f"/v1/memories?scope={SCOPE}"))["items"]
        return list(found) if any(run["status"] == "done" for run in runs) else []

    return session, await eventually(dreamt)


async def test_a_dreamt_memory_is_erased_from_every_table_with_all_that_quotes_it(
    clocked: Stack, capfd: pytest.CaptureFixture[str]
) -> None:
    stack = clocked
    secret = "we decided to call Quentin Abernathy at 0171 5550142 for every late delivery"
    session, memories = await _dreamt(
        stack, f"Understood,  {secret}, because he has the keys.", "Prices are kept in cents."
    )
    start = {"agent": "ann", "project": "shop"}
    headers = {"Idempotency-Key": "start-1"}
    await stack.post("/v1/sessions/start", start, headers=headers)
    quoting = [one for one in memories if "Abernathy" in one["content"]]
    dreamt = next(one["id"] for one in quoting if one["kind"] != "session")
    edit = {"tags": ["Abernathy"], "metadata": {"note": "call 0171 5550142"}}
    assert (await stack.call("PATCH", f"/v1/memories/{dreamt}", edit)).status == 200
    trace = (await stack.post("/v1/recall", {"query": secret}))["trace_id"]
    await eventually(lambda: _is_traced(stack, trace))
    assert {"turn.content", "memory.content"} <= set(_holding(stack.admin_url, "Abernathy"))
    writer = stack.key_of(role=KeyRole.WRITER)
    path = f"/v1/memories/{dreamt}/erase"
    assert (await stack.call("POST", path, {}, key=writer)).status == 403
    capfd.readouterr()
    receipt = await stack.post(path, {"reason": "asked for by who it names"})
    assert receipt["rows"].items() >= {"memory": len(quoting), "turn": 1}.items()
    assert receipt["still_quoted_in"] == []
    assert datetime.fromisoformat(receipt["in_backups_before"]) <= datetime.now(UTC)
    for text in ("Abernathy", "5550142"):
        assert _holding(stack.admin_url, text) == [], text
        assert text not in await _exported(stack)
        assert text not in "".join(capfd.readouterr())
        found = await stack.post("/v1/recall", {"query": text, "include": ["turns", "archived"]})
        assert text not in json.dumps(found["memories"])
    turns = (await stack.get(f"/v1/sessions/{session}/turns"))["items"]
    assert "[forgotten]" in turns[0]["content"]
    assert turns[1]["content"] == "Prices are kept in cents."
    # Once more: nothing is left, and nothing brings it back.
    assert (await stack.post(path, {}))["rows"] == {}
    assert (await stack.call("POST", f"/v1/memories/{dreamt}/restore")).status == 404


async def test_the_text_of_a_forgotten_memory_is_erased_when_its_days_are_over(
    clocked: Stack,
) -> None:
    stack = clocked
    kept = await _remember(stack, "Deliveries are handed over at gate four")
    memory = await _remember(stack, f"{PHONE}.\nSee src/abernathy.py.", key="Abernathy")
    young = await _remember(stack, "The manager before was called Walpurga Ziegler")
    exported = await _exported(stack)
    late = "update memory set known_from = known_from - interval '31 days' where id = %s"
    for one in (memory, young):
        assert (await stack.call("DELETE", f"/v1/memories/{one}")).status == 200
    await asyncio.to_thread(run, stack.admin_url, late, memory)

    async def erased() -> bool:
        content = "select content = '' from memory where id = %s"
        return bool(value(stack.admin_url, content, memory))

    await eventually(erased)
    assert _holding(stack.admin_url, "bernathy") == []
    assert "memory.content" in _holding(stack.admin_url, "Walpurga")
    assert (await stack.call("POST", f"/v1/memories/{memory}/restore")).status == 404
    assert (await stack.post(f"/v1/memories/{young}/restore", None))["status"] == "active"
    assert (await stack.call("GET", f"/v1/memories/{kept}")).status == 200
    # It stays forgotten when an old export comes back.
    assert (await send_import(stack, exported))[0] == 200
    assert (await stack.call("GET", f"/v1/memories/{memory}")).status == 404
    assert _holding(stack.admin_url, "Abernathy") == []


async def test_without_days_forgetting_erases_at_once(
    database: DatabaseUrls, nats_url: str
) -> None:
    settings: dict[str, Any] = {"forget_days": 0, "ingest_role": "api"}
    async with running_stack(database, nats_url, model_home(), **settings) as stack:
        made = await stack.post("/v1/remember", {"content": PHONE, "scope": SCOPE})
        other = await stack.post("/v1/remember", {"content": f"{PHONE} too", "scope": SCOPE})
        gone = await stack.call("DELETE", f"/v1/memories/{made['id']}")
        assert (gone.status, gone.body["restorable_until"]) == (200, None)
        left = "select id from memory where content <> ''"
        assert [str(row[0]) for row in rows(stack.admin_url, left)] == [other["id"]]
        discard = {"verdict": "discard"}
        await stack.post(f"/v1/memories/{other['id']}/feedback", discard)
        assert _holding(stack.admin_url, "Abernathy") == []


async def test_erasing_reaches_only_what_its_caller_may_write(stack: Stack) -> None:
    said = 'The gate of the yard opens with the words "Open Barley Now"'
    start = {"agent": "ann", "project": "mill"}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    body = {"session": session, "turns": [{"role": "user", "content": f"Note: {said}"}]}
    await stack.post("/v1/turns", body)
    hunks = {"path": "src/gate.py", "status": "modified"}
    commit = {"sha": "e" * 40, "subject": said, "committed_at": "2026-03-01T00:00:00Z"}
    change = {"project": "mill", "branch": "main", "after": "e" * 40, "commits": [commit]}
    await stack.post("/v1/git/changes", {**change, "files": [hunks]})
    grants = ("project/shop", "project/shop/*")
    narrow = stack.key_of(role=KeyRole.ADMIN, reads=grants, writes=grants)

    async def shown() -> str:
        return str((await stack.get(f"/v1/sessions/{session}/turns"))["items"][0]["content"])

    guess = await _remember(stack, f"{said}\n- src/gate.py")
    receipt = await stack.post(f"/v1/memories/{guess}/erase", {}, key=narrow)
    assert receipt["rows"].keys().isdisjoint({"turn", "session", "git_event", "git_file"})
    assert said in await shown()
    again = await _remember(stack, f"{said}\n- src/gate.py", scope="project/yard")
    receipt = await stack.post(f"/v1/memories/{again}/erase", {})
    assert receipt["rows"]["turn"] == 1
    assert await shown() == "Note: [forgotten]"
    kept = "select body -> 'files' -> 0 ->> 'path', body::text from git_event where tenant = %s"
    [(path, text)] = rows(stack.admin_url, kept, stack.number())
    assert (path, "Barley" in text) == ("src/gate.py", False)


QUAY = "project/quay"
FORGET = "/v1/memories/forget"


async def _store(stack: Stack, items: list[dict[str, Any]]) -> list[str]:
    body = {"items": [{"scope": QUAY, "kind": "lesson", **item} for item in items]}
    return [item["id"] for item in (await stack.post("/v1/remember/batch", body))["items"]]


async def _list_ids(stack: Stack, scope: str = QUAY) -> set[str]:
    status = "status=active&status=superseded&status=archived"
    page = await stack.get(f"/v1/memories?scope={scope}&{status}&limit=200")
    return {memory["id"] for memory in page["items"]}


async def test_the_memories_that_pass_all_filters_are_forgotten(stack: Stack) -> None:
    tar, rope, sail, other = await _store(
        stack,
        [
            {"content": "Tar is in the shed.", "tags": ["draft"], "key": "tar"},
            {"content": "Rope hangs on a hook.", "tags": ["draft"], "key": "rope"},
            {"content": "The sail is white."},
            {"content": "Gulls nest elsewhere.", "tags": ["draft"], "scope": "project/other"},
        ],
    )
    body = {"scope": QUAY, "tag": "draft", "keys": ["tar", "unknown"]}
    first = await stack.post(FORGET, body)
    assert (first["forgotten"], first["more"]) == (1, False)
    assert first["restorable_until"]
    assert await _list_ids(stack) == {rope, sail}
    assert (await stack.post(FORGET, body))["forgotten"] == 0
    assert (await stack.post(FORGET, {"ids": [rope[-8:], tar]}))["forgotten"] == 1
    assert (await stack.post(f"/v1/memories/{rope}/restore", {}))["status"] == "active"
    assert (await stack.post(FORGET, {"scope": QUAY}))["forgotten"] == 2
    assert await _list_ids(stack, "project/other") == {other}


async def test_superseded_memories_are_forgotten_unless_only_active_ones_are_meant(
    stack: Stack,
) -> None:
    old = {"content": "The crane lifts two tons.", "key": "crane"}
    new = {**old, "content": "The crane lifts five tons.", "supersede_reason": "rebuilt"}
    before, _ = [(await _store(stack, [item]))[0] for item in (old, new)]
    active = {"scope": QUAY, "status": ["active"]}
    assert (await stack.post(FORGET, active))["forgotten"] == 1
    assert await _list_ids(stack) == {before}
    assert (await stack.post(FORGET, {"scope": QUAY}))["forgotten"] == 1
    assert await _list_ids(stack) == set()


async def test_a_call_forgets_a_part_and_says_that_there_is_more(stack: Stack) -> None:
    items = [{"content": f"Berth {n} is free."} for n in range(MAX_FORGOTTEN + 3)]
    await _store(stack, items)
    answers = [await stack.post(FORGET, {"scope": QUAY}) for _ in range(2)]
    assert [(one["forgotten"], one["more"]) for one in answers] == [
        (MAX_FORGOTTEN, True),
        (3, False),
    ]


async def test_what_a_key_may_not_write_stays_with_all_others_of_the_call(stack: Stack) -> None:
    mine, theirs = await _store(
        stack, [{"content": "My boat is blue."}, {"content": "Theirs is red.", "scope": "global"}]
    )
    key = stack.key_of(reads=["*"], writes=[QUAY])
    bodies = [{"ids": [mine, theirs]}, {"scope": "global"}, {"tag": "draft"}]
    replies = [await stack.call("POST", FORGET, body, key=key) for body in bodies]
    assert [reply.status for reply in replies] == [403, 403, 422]
    assert await _list_ids(stack) == {mine}
    assert await _list_ids(stack, "global") == {theirs}
