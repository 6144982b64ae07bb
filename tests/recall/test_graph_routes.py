"""Links, walks, impact and statistics of the graph, through the gateway."""

from __future__ import annotations

from typing import Any

from reverie.domain.access.principals import KeyRole
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Reply, Stack, eventually, running_stack

HERE = "project/shop"


async def _told(stack: Stack, content: str, **fields: Any) -> str:
    """The id of a memory of the project."""
    body = {"content": content, "scope": HERE, "kind": "context", **fields}
    return str((await stack.post("/v1/remember", body))["id"])


async def _link(stack: Stack, source: str, kind: str, target: str, **more: Any) -> Reply:
    body = {"from": source, "to": target, "type": kind, **more.pop("fields", {})}
    return await stack.call("POST", "/v1/links", body, **more)


async def _around(stack: Stack, memory: str, query: str = "", **more: Any) -> Any:
    return await stack.get(f"/v1/memories/{memory}/subgraph{query}", **more)


def _edges(picture: Any) -> set[tuple[str, str, str]]:
    return {(one["from"], one["type"], one["to"]) for one in picture["edges"]}


def _ids(picture: Any) -> set[str]:
    return {one["id"] for one in picture["nodes"]}


async def test_a_causal_link_that_closes_a_circle_is_refused_with_the_path(
    stack: Stack,
) -> None:
    a, b, c = [await _told(stack, f"thing number {n}", key=f"thing-{n}") for n in "abc"]
    assert (await _link(stack, a, "led_to", b)).status == 201
    assert (await _link(stack, c, "caused_by", b)).status == 201
    back = await _link(stack, c, "led_to", a)
    assert (back.status, back.body["code"]) == (409, "conflict")
    assert [one["id"] for one in back.body["current"]["path"]] == [a, b, c, a]
    for memory, label in ((a, "thing-a"), (b, "thing-b"), (c, "thing-c")):
        assert f"{memory[-8:]} ({label})" in back.body["detail"]
    assert (await _link(stack, b, "relates_to", a)).status == 201


async def test_a_link_stated_from_both_ends_is_one_and_its_opposite_is_refused(
    stack: Stack,
) -> None:
    decision = await _told(stack, "pool of five", kind="decision")
    bug = await _told(stack, "pool runs dry", kind="bug")
    one = await _link(stack, decision, "led_to", bug)
    same = await _link(stack, bug, "caused_by", decision)
    assert same.body == {"id": one.body["id"], "created": False, "redactions": 0}
    assert (await _link(stack, decision, "caused_by", bug)).status == 409


async def test_a_new_bug_may_be_caused_by_an_older_decision_of_its_session(stack: Stack) -> None:
    started = await stack.post("/v1/sessions/start", {"agent": "a", "project": "shop"})
    session = started["session"]
    decision, bug, lesson = [
        await _told(stack, text, session=session) for text in ("use a cache", "stale", "expire it")
    ]
    assert (await _link(stack, bug, "caused_by", decision)).status == 201
    picture = await _around(stack, decision, "?depth=5")
    assert {(bug, "follows", decision), (lesson, "follows", bug)} <= _edges(picture)
    assert (decision, "led_to", bug) in _edges(picture)
    assert (lesson, "follows", decision) not in _edges(picture)
    assert picture["truncated"] is False


async def test_an_invalid_link_is_refused_by_its_field(stack: Stack) -> None:
    a, b = await _told(stack, "one"), await _told(stack, "two")
    gone = "00000000-0000-7000-8000-000000000000"
    for kind in ("follows", "likes", ""):
        reply = await _link(stack, a, kind, b)
        assert (reply.status, reply.body["field"]) == (422, "type"), kind
    assert (await _link(stack, a, "relates_to", a)).body["field"] == "to"
    assert (await _link(stack, a, "relates_to", gone)).status == 404
    assert (await _link(stack, gone, "relates_to", a)).status == 404
    heavy = await _link(stack, a, "relates_to", b, fields={"weight": 2})
    assert (heavy.status, heavy.body["field"]) == (422, "weight")
    assert (await _link(stack, a, "relates_to", b, fields={"weight": 0.7})).status == 201
    assert (await stack.get(f"/v1/memories/{a}/subgraph"))["edges"][0]["weight"] == 0.7
    assert (await stack.call("DELETE", f"/v1/links/{gone}")).status == 404
    deep = await stack.call("GET", f"/v1/memories/{a}/subgraph?depth=10")
    assert (deep.status, deep.body["field"]) == (422, "depth")
    assert "5" in deep.body["detail"]


async def test_secrets_in_metadata_are_redacted_and_the_author_is_recorded(stack: Stack) -> None:
    key = stack.key_of(role=KeyRole.WRITER, agent="ann")
    a, b = await _told(stack, "one"), await _told(stack, "two")
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    reply = await _link(stack, a, "relates_to", b, key=key, fields={"metadata": {"note": secret}})
    assert reply.body["redactions"] == 1
    [edge] = (await _around(stack, a))["edges"]
    assert secret not in str(edge)
    assert edge["actor"] == "ann"


async def test_a_removed_link_is_gone_now_and_visible_as_of_then(stack: Stack) -> None:
    a, b = await _told(stack, "one"), await _told(stack, "two")
    link = (await _link(stack, a, "led_to", b)).body["id"]
    [edge] = (await _around(stack, a))["edges"]
    then = edge["known_from"].replace("+", "%2B")
    assert (await stack.call("DELETE", f"/v1/links/{link}")).status == 200
    assert (await stack.call("DELETE", f"/v1/links/{link}")).status == 404
    assert (await _around(stack, a))["edges"] == []
    assert _edges(await _around(stack, a, f"?as_of={then}")) == {(a, "led_to", b)}
    unborn = await stack.call("GET", f"/v1/memories/{a}/subgraph?as_of=2020-01-01T00:00:00Z")
    assert unborn.status == 404
    assert (await _link(stack, b, "led_to", a)).status == 201


async def test_a_walk_ends_in_circles_and_reports_what_limited_it(stack: Stack) -> None:
    names = ("alder", "birch", "cedar", "dogwood", "elm", "fir")
    ids = [await _told(stack, f"about {name} wood") for name in names]
    for one, following in zip(ids, [*ids[1:], ids[0]], strict=True):
        assert (await _link(stack, one, "relates_to", following)).status == 201
    whole = await _around(stack, ids[0], "?depth=5")
    assert (_ids(whole), len(whole["edges"]), whole["truncated"]) == (set(ids), 6, False)
    near = await _around(stack, ids[0], "?depth=1")
    assert [one["depth"] for one in near["nodes"]] == [0, 1, 1]
    few = await _around(stack, ids[0], "?depth=5&limit=3")
    assert (len(few["nodes"]), few["truncated_by"]) == (3, ["nodes"])
    narrow = await _around(stack, ids[0], "?depth=5&fan_out=1")
    assert narrow["truncated_by"] == ["fan_out"]
    assert (await _around(stack, ids[0][-8:]))["root"] == ids[0]


async def test_no_walk_passes_through_unreadable_memories(stack: Stack) -> None:
    a = await _told(stack, "mine")
    hidden = await _told(stack, "theirs", scope="project/other")
    beyond = await _told(stack, "mine too")
    await _link(stack, a, "led_to", hidden)
    await _link(stack, hidden, "led_to", beyond)
    narrow = stack.key_of(role=KeyRole.WRITER, reads=[HERE], writes=[HERE])
    assert _ids(await _around(stack, a, "?depth=5", key=narrow)) == {a}
    assert _ids(await _around(stack, a, "?depth=5")) == {a, hidden, beyond}
    refused = await _link(stack, beyond, "led_to", a, key=narrow)
    assert refused.status == 409
    assert hidden not in str(refused.body)
    assert "theirs" not in str(refused.body)
    assert (await _link(stack, a, "relates_to", hidden, key=narrow)).status == 404
    reader = stack.key_of(role=KeyRole.READER, reads=[HERE], writes=[HERE])
    assert (await _link(stack, a, "relates_to", beyond, key=reader)).status == 403
    assert (await stack.get("/v1/graph/stats", key=narrow))["memories"] == 2


async def test_tenants_can_neither_link_nor_see_each_others_memories(stack: Stack) -> None:
    a, b = await _told(stack, "one"), await _told(stack, "two")
    link = (await _link(stack, a, "led_to", b)).body["id"]
    other = stack.apart().key
    own = (await stack.post("/v1/remember", {"content": "own"}, key=other))["id"]
    for ends in ((a, b), (own, a), (a, own)):
        assert (await _link(stack, ends[0], "relates_to", ends[1], key=other)).status == 404
    for method, path in (
        ("DELETE", f"/v1/links/{link}"),
        ("GET", f"/v1/memories/{a}/subgraph"),
        ("GET", f"/v1/memories/{a[-8:]}/subgraph"),
    ):
        assert (await stack.call(method, path, key=other)).status == 404
    assert (await stack.get("/v1/graph/stats", key=other))["nodes"] == 1
    assert (await stack.get("/v1/impact?path=src/a.py", key=other))["items"] == []


async def test_impact_names_memories_of_the_file_and_their_dependants(stack: Stack) -> None:
    direct = await _told(stack, "tokens are checked in src/auth/token.py against Redis")
    leaning = await _told(stack, "sessions trust the token check")
    await _told(stack, "prices live in src/prices.py")
    await _link(stack, leaning, "depends_on", direct)

    async def anchored() -> Any:
        found = await stack.get("/v1/impact?path=src/auth/token.py&project=shop")
        return found if len(found["items"]) == 2 else None

    found = await eventually(anchored)
    assert [(one["id"], one["score"]) for one in found["items"]] == [(direct, 0.5), (leaning, 0.4)]
    file = "src/auth/token.py"
    assert found["items"][1]["path"] == [file, "<-touches-", direct, "<-depends_on-", leaning]
    assert found["files"] == [file]
    assert (await stack.get("/v1/impact?path=lib/token.py"))["items"] == []
    upgrade = await stack.get("/v1/impact?entity=Redis&project=shop")
    assert (upgrade["entity"], upgrade["entities"], upgrade["files"]) == ("Redis", ["redis"], [])
    assert [(one["id"], one["score"]) for one in upgrade["items"]] == [
        (direct, 0.5),
        (leaning, 0.4),
    ]
    assert upgrade["items"][0]["path"] == ["redis", "<-touches-", direct]
    assert await stack.walked("/v1/impact?entity=Redis&project=shop") == upgrade["items"]
    assert (await stack.get("/v1/impact?entity=redis&project=other"))["items"] == []
    for query, named in (("", "path"), ("?path=a.py&entity=redis", "entity")):
        refused = await stack.call("GET", f"/v1/impact{query}")
        assert (refused.status, refused.body["field"]) == (422, named)
    change = {
        "project": "shop", "branch": "main", "after": "a" * 40,
        "commits": [{"sha": "a" * 40, "subject": "Check twice",
                     "committed_at": "2099-01-01T00:00:00Z"}],
        "files": [{"path": file, "status": "modified"}],
    }  # fmt: skip
    await stack.post("/v1/git/changes", change)

    async def marked() -> Any:
        [first, *_] = (await stack.get(f"/v1/impact?path={file}"))["items"]
        return first["evidence"]

    assert [one["commit"] for one in await eventually(marked)] == ["a" * 40]


async def test_an_impact_page_is_complete_although_a_memory_was_deleted_meanwhile(
    stack: Stack,
) -> None:
    path = "/v1/impact?path=src/auth/token.py"
    told = [await _told(stack, f"tokens of {n} are checked in src/auth/token.py") for n in "abcd"]

    async def anchored() -> Any:
        return len((await stack.get(path))["items"]) == 4

    await eventually(anchored)
    page = await stack.get(path, params={"limit": 2})
    assert [one["id"] for one in page["items"]] == told[:2]
    assert (await stack.call("DELETE", f"/v1/memories/{told[0]}")).status == 200
    page = await stack.get(path, params={"limit": 1, "cursor": page["next"]})
    assert [one["id"] for one in page["items"]] == told[2:3]
    newer = await _told(stack, "tokens of e are checked in src/auth/token.py")
    await eventually(anchored)
    page = await stack.get(path, params={"limit": 2, "cursor": page["next"]})
    assert ([one["id"] for one in page["items"]], page["next"]) == ([told[3], newer], None)


async def test_statistics_count_eleven_hundred_memories_exactly(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with running_stack(database, nats_url, model_home(), ingest_role="api") as alone:
        items = [
            {"content": f"fact number {n}", "scope": HERE, "kind": "decision" if n % 2 else "bug"}
            for n in range(1100)
        ]
        ids: list[str] = []
        for start in range(0, 1100, 500):
            told = await alone.post("/v1/remember/batch", {"items": items[start : start + 500]})
            ids.extend(one["id"] for one in told["items"])
        for source, target in ((0, 1), (1, 2), (10, 11)):
            await _link(alone, ids[source], "part_of", ids[target])
        for query in ("", "?project=shop", f"?scope={HERE}"):
            found = await alone.get(f"/v1/graph/stats{query}")
            assert (found["nodes"], found["memories"]) == (1100, 1100)
            assert found["nodes_by_kind"] == {"bug": 550, "decision": 550}
            assert found["nodes_by_status"] == {"active": 1100}
            assert found["edges_by_type"] == {"part_of": 3}
            assert (found["orphans"], found["components"]) == (1095, 1097)
            assert found["largest_component"] == 3
        assert (await alone.get("/v1/graph/stats?project=none"))["components"] == 0
