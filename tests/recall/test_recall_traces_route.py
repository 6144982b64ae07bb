"""The recall trace: its content, who may read it, and its printout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from reverie.domain.core.errors import Unavailable
from reverie.domain.core.memory import Memory
from reverie.store.search.search import SearchStore
from tests.support.commands import command
from tests.support.stack import Stack
from tests.support.tables import rows

HERE, BESIDE = "project/shop", "project/shop/topic/imports"


async def _told(stack: Stack, content: str, **fields: Any) -> str:
    body = {"content": content, "scope": HERE, **fields}
    return str((await stack.post("/v1/remember", body))["id"])


async def _asked(stack: Stack, query: str, **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """An answer, and its trace."""
    key = fields.pop("key", None)
    answer = await stack.post("/v1/recall", {"query": query, **fields}, key=key)
    return answer, await stack.get(f"/v1/traces/{answer['trace_id']}", key=key)


def _by_id(trace: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in trace["candidates"]}


async def test_a_trace_contains_scopes_arms_hops_factors_cuts_and_times(
    stack: Stack, tmp_path: Path
) -> None:
    bug = await _told(stack, "The import was slow because of locks", kind="bug")
    edge = [{"to": bug, "type": "led_to"}]
    cause = await _told(stack, "We chose one big transaction", kind="decision", edges=edge)
    double = await _told(stack, "The import was slow because of locks", kind="bug", scope=BESIDE)
    long = await _told(stack, "The import reads files. " + "Many words follow here. " * 60)
    edge = [{"to": bug, "type": "relates_to"}]
    task = await _told(stack, "Make the import fast", kind="task", edges=edge)
    await stack.settled()
    question = 'Why was the import "slow" in import_orders(), docs/import.md, yesterday?'
    asked = {"scopes": [HERE, BESIDE], "kinds": ["bug", "decision", "context"], "budget_tokens": 60}
    answer, trace = await _asked(stack, question, **asked)
    assert trace["trace_id"] == answer["trace_id"]
    assert (trace["query"], trace["scopes"], trace["intent"]) == (
        question,
        [HERE, BESIDE],
        "why",
    )
    assert (trace["language"], trace["phrases"], trace["paths"]) == (
        "en",
        ["slow"],
        ["docs/import.md"],
    )
    assert "import_orders" in trace["identifiers"]
    assert trace["period"]["since"] < trace["period"]["until"]
    assert {"import", "slow"} <= set(trace["keywords"])
    assert (trace["budget_tokens"], trace["tokens"]) == (60, answer["tokens"])
    assert {"words", "meaning", "graph", "store", "load"} <= set(trace["timings"])
    assert sum(trace["timings"].values()) <= trace["milliseconds"] * 3
    assert (trace["fusion"], trace["weights"]["words"] > 0) == ("weighted", True)
    assert (trace["degraded"], trace["returned"]) == ([], len(answer["memories"]))
    told = _by_id(trace)
    ranked = [one["id"] for one in trace["candidates"] if one.get("rank")]
    assert ranked == [hit["id"] for hit in answer["memories"]]
    assert told[bug]["arms"]["words"]["score"] > 0
    assert {"phrase", "kind"} <= set(told[bug]["factors"])
    assert [(hop["source"], hop["type"]) for hop in told[cause]["hops"]][:1] == [(bug, "led_to")]
    twins = {told[bug]["rejected_for"], told[double]["rejected_for"]}
    assert twins in ({None, bug}, {None, double})
    assert {told[bug]["rejection_reason"], told[double]["rejection_reason"]} == {None, "double"}
    assert told[long]["rejection_reason"] == "budget"
    assert told[task]["rejection_reason"] == "filter"
    for one in trace["candidates"]:
        product = one["base"]
        for factor in one["factors"].values():
            product *= factor
        assert abs(product - one["score"]) < 0.001, one
        assert one["base"] == one["fused"] or one["hops"] or "sparse" in one["arms"], one
    limited = (await _asked(stack, "import", limit=1))[1]
    cuts = {one["rejection_reason"] for one in limited["candidates"] if one["rejection_reason"]}
    assert "limit" in cuts
    listed = await stack.get("/v1/traces?limit=1")
    assert [one["id"] for one in listed["items"]] == [limited["id"]]
    rest = await stack.get(f"/v1/traces?cursor={listed['next']}")
    assert [one["id"] for one in rest["items"]] == [trace["id"]]
    shown = await _printed(stack, tmp_path, trace["trace_id"])
    for said in (question, "led_to", "not in the result", "budget", "phrase 1.30", bug[-8:]):
        assert said in shown, shown
    assert limited["trace_id"] in await _printed(stack, tmp_path)
    assert json.loads(await _printed(stack, tmp_path, trace["id"], "--json"))["id"] == trace["id"]
    shop = "project/web-shop"
    there = await _told(stack, "Orders go through one big transaction", scope=shop)
    named = (await _asked(stack, "Which transaction in the web-shop?", scopes=[HERE, shop]))[1]
    assert (named["projects"], "shop" in named["keywords"]) == (["web-shop"], True)
    told = _by_id(named)
    assert (told[there]["factors"]["project"], "project" in told[cause]["factors"]) == (1.1, False)


async def _printed(stack: Stack, home: Path, *words: str) -> str:
    env = {
        "REVERIE_API_KEY": stack.key,
        "REVERIE_RECALL_PORT": stack.url.rsplit(":", 1)[1],
        "REVERIE_HOME": str(home),
    }
    code, shown, errors = await command(env, "trace", *words)
    assert code == 0, errors
    return shown


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_trace_tells_why_a_candidate_could_not_be_loaded(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    async def load(*_: object) -> dict[UUID, Memory]:
        if is_late:
            raise Unavailable("Postgres", "it is too slow")
        return {}

    told = await _told(stack, "The quokka sleeps in the barn")
    await stack.settled()
    with monkeypatch.context() as patch:
        patch.setattr(SearchStore, "load_memories", load)
        answer = await stack.post("/v1/recall", {"query": "Where does the quokka sleep?"})
    trace = await stack.get(f"/v1/traces/{answer['trace_id']}")
    assert (answer["memories"], "load" in trace["degraded"]) == ([], is_late)
    reason = "not read in time" if is_late else "gone meanwhile"
    assert _by_id(trace)[told]["rejection_reason"] == reason


async def test_a_trace_is_visible_to_keys_that_may_read_all_of_it_and_contains_no_secret(
    stack: Stack,
) -> None:
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    gone = await _told(stack, "the quokka deploy needs a token")
    kept = await _told(stack, "the quokka deploy runs at night")
    session = (await stack.post("/v1/sessions/start", {"agent": "ann", "project": "shop"}))[
        "session"
    ]
    ann = stack.key_of(reads=["project/*", "global"], agent="ann")
    trace_parent = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}
    asked = {"query": f"quokka deploy with {secret}", "scopes": [HERE], "include": ["turns"]}
    for body in (asked, {**asked, "session": session}):
        reply = await stack.call("POST", "/v1/recall", body, ann, headers=trace_parent)
        assert (reply.status, reply.body["trace_id"]) == (200, "ab" * 16)
    path = f"/v1/traces/{'ab' * 16}"
    mine = await stack.get(path, key=ann)
    assert (mine["session"], mine["agent"], len(mine["related_traces"])) == (session, "ann", 1)
    first = await stack.get(f"/v1/traces/{mine['related_traces'][0]}", key=ann)
    assert (first["session"], first["related_traces"]) == (None, [])
    of_session = await stack.get(f"/v1/traces?session={session}", key=ann)
    assert [one["id"] for one in of_session["items"]] == [mine["id"]]
    assert (await stack.get(f"/v1/traces?session={gone}", key=ann))["items"] == []
    assert {gone, kept} <= set(_by_id(mine))
    turn = {"session": session, "query": "quokka deploy"}
    before = await stack.post("/v1/preflow", turn, key=ann)
    led = await stack.get(f"/v1/traces/{before['trace_id']}", key=ann)
    assert (led["session"], led["query"]) == (session, "quokka deploy")
    stored = rows(
        stack.admin_url, "select t::text from recall_trace t where tenant = %s", stack.number()
    )
    assert secret not in str((mine, first, stored))
    assert "[REDACTED_" in mine["query"]
    assert (await stack.call("GET", path)).status == 200
    for other in (
        stack.key_of(reads=["project/shop"], agent="bob"),
        stack.key_of(reads=["global", "project/other/*"]),
        stack.apart().key,
    ):
        assert (await stack.call("GET", path, key=other)).status == 404
        assert (await stack.get("/v1/traces", key=other))["items"] == []
    assert (await stack.call("GET", "/v1/traces/no-id")).body["field"] == "id"
    assert (await stack.call("DELETE", f"/v1/memories/{gone}")).status == 200
    assert gone not in str(await stack.get(path))
    assert kept in _by_id(await stack.get(path))
    done = await stack.call("DELETE", "/v1/admin/scopes?scope=project/shop")
    assert done.body["rows"]["recall_trace"] == 3
    assert (await stack.call("GET", path)).status == 404


async def test_scores_tell_nothing_of_words_in_scopes_that_are_not_asked(
    stack: Stack,
) -> None:
    own, away = "project/mine", "project/secret"
    for text in ("zugspitze is our customer", "the harbour is deep", "the harbour is cold"):
        await _told(stack, text, scope=own)
    key = stack.key_of(reads=(own,), writes=(own,))

    async def scores(asking: str | None) -> list[Any]:
        answer, trace = await _asked(stack, "zugspitze", key=asking, scopes=[own])
        [hit] = [one for one in trace["candidates"] if "words" in one["arms"]]
        return [answer["memories"][0]["score"], hit["score"], hit["fused"], hit["base"],
                hit["arms"]["words"]["score"]]  # fmt: skip

    await stack.settled()
    alone, alone_whole = await scores(key), await scores(None)
    for n in range(5):
        await _told(stack, f"zugspitze pays late, number {n}", scope=away)
    await stack.settled()
    assert await scores(key) == alone
    assert await scores(None) == alone_whole, "only words of the scopes that are asked count"
    assert all(round(score, 2) == score for score in alone)
    answer, _ = await _asked(stack, "zugspitze in the harbour", key=key, scopes=[own])
    relevances = [answer["relevance"], *(one["relevance"] for one in answer["memories"])]
    assert all(round(relevance, 2) == relevance for relevance in relevances)
