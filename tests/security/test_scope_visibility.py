"""What agents, sub-agents, projects and features see of each other."""

from __future__ import annotations

from typing import Any

from tests.support.stack import Stack, eventually


async def _start(stack: Stack, key: str, **fields: str) -> dict[str, Any]:
    made = await stack.post("/v1/sessions/start", {"project": "shop", **fields}, key=key)
    return dict(made)


async def _seen(stack: Stack, key: str, word: str, **fields: Any) -> set[str]:
    """The contents that a recall shows."""
    found = await stack.post("/v1/recall", {"query": word, **fields}, key=key)
    return {one["content"] for one in found["memories"]}


async def _note(stack: Stack, key: str, scope: str, **fields: Any) -> Any:
    body = {"content": f"kestrel of {scope}", "scope": scope, **fields}
    return (await stack.post("/v1/remember", body, key=key))["id"]


async def test_a_private_memory_is_invisible_to_another_agent_and_visible_in_the_next_session(
    stack: Stack,
) -> None:
    ann, bob = stack.key_of(agent="ann"), stack.key_of(agent="bob")
    first = await _start(stack, ann, agent="ann", external_id="chat")
    same = await _start(stack, bob, agent="bob", external_id="chat")
    private = await _note(stack, ann, "agent/ann", pinned=True)
    mine = "kestrel of agent/ann"
    other = {"session": same["session"]}
    assert mine not in await _seen(stack, bob, "kestrel")
    assert mine not in await _seen(stack, bob, "kestrel", **other)
    assert mine not in (await stack.get("/v1/context", key=bob))["markdown"]
    listed = await stack.get("/v1/memories", key=bob)
    assert mine not in str(listed)
    for path in (f"/v1/memories/{private}", f"/v1/memories/{private[-8:]}"):
        assert (await stack.call("GET", path, key=bob)).status == 404
    for path, body in (
        ("/v1/recall", {"query": "kestrel", "scopes": ["agent/ann"]}),
        ("/v1/recall", {"query": "kestrel", "scopes": ["agent/ann"], **other}),
        ("/v1/remember", {"content": mine, "scope": "agent/ann"}),
    ):
        assert (await stack.call("POST", path, body, bob)).status == 403
    unbound = {"query": "kestrel", "scopes": ["agent/ann"], **other}
    assert (await stack.call("POST", "/v1/recall", unbound)).status in {403, 404}
    listed = {key: await stack.get("/v1/sessions?project=shop", key=key) for key in (ann, bob)}
    assert [one["id"] for one in listed[ann]["items"]] == [first["session"]]
    assert [one["id"] for one in listed[bob]["items"]] == [same["session"]]
    assert (await stack.get("/v1/sessions?agent=ann", key=bob))["items"] == []
    everyones = await stack.get("/v1/sessions?limit=1")
    assert [one["id"] for one in everyones["items"]] == [same["session"]]
    rest = await stack.get(f"/v1/sessions?cursor={everyones['next']}")
    assert [one["external_id"] for one in rest["items"]] == ["chat"]
    following = await _start(stack, ann, agent="ann", external_id="next")
    assert following["session"] != first["session"]
    assert mine in following["context"]
    assert mine in await _seen(stack, ann, "kestrel", session=following["session"])


async def test_a_sub_agents_memory_is_hidden_from_its_sibling_and_shown_to_its_parent_if_granted(
    stack: Stack,
) -> None:
    one, two, told = (
        stack.key_of(agent="ann/sub/one"),
        stack.key_of(agent="ann/sub/two"),
        stack.key_of(agent="ann/sub/two", reads=["*", "agent/ann"]),
    )
    ann = stack.key_of(agent="ann")
    await _note(stack, one, "agent/ann/sub/one")
    await _note(stack, ann, "agent/ann")
    sub, parent = "kestrel of agent/ann/sub/one", "kestrel of agent/ann"
    assert await _seen(stack, one, "kestrel") == {sub}
    assert await _seen(stack, two, "kestrel") == set()
    assert await _seen(stack, told, "kestrel") == {parent}
    assert await _seen(stack, ann, "kestrel") == {sub, parent}
    started = await _start(stack, ann, agent="ann/sub/two")
    assert await _seen(stack, ann, "kestrel", session=started["session"]) == set()


async def test_a_feature_of_one_project_is_separate_from_that_of_another(stack: Stack) -> None:
    key = stack.key_of()
    shop = await _start(stack, key, agent="ann", branch="feat/login.v2")
    bank = await _start(stack, key, agent="ann", project="bank", branch="feat/login.v2")
    other = await _start(stack, key, agent="ann", branch="feat/logout")
    feature = shop["scope"].removeprefix("project/shop/")
    assert bank["scope"] == f"project/bank/{feature}"
    inside = ["project/shop", shop["scope"], "project/shop/topic/auth/keys", "global", feature]
    outside = ["project/bank", bank["scope"], other["scope"], "project/bank/topic/auth"]
    noted = [await _note(stack, key, scope) for scope in inside]
    edges = [{"to": noted[1], "type": "relates_to"}]
    for scope in outside:
        await _note(stack, key, scope, edges=edges)
    seen = await _seen(stack, key, "kestrel", session=shop["session"], limit=50)
    assert seen == {f"kestrel of {scope}" for scope in inside}
    named = await _seen(stack, key, "kestrel", scopes=[shop["scope"]])
    assert named == {f"kestrel of {shop['scope']}"}
    again = await _start(stack, key, agent="ann", branch="feat/login.v2")
    assert f"kestrel of {bank['scope']}" not in again["context"]


async def test_a_key_of_a_project_alone_sees_no_files_or_entities_that_only_a_branch_mentions(
    stack: Stack,
) -> None:
    secret = {"scope": "project/shop/feature/takeover", "git": {"files": ["src/takeover.py"]}}
    await stack.post("/v1/remember", {"content": "postgresql runs the takeover", **secret})
    own = {"scope": "project/shop", "git": {"files": ["src/open.py"]}}
    mine = await stack.post("/v1/remember", {"content": "redis serves port 6379", **own})
    narrow = stack.key_of(reads=("project/shop",), writes=("project/shop",))
    wide = stack.key_of(reads=("project/shop/*",), writes=("project/shop",))

    async def nodes(key: str) -> dict[str, str]:
        path = "/v1/memories?kind=file&kind=entity&limit=50"
        return {one["content"]: one["id"] for one in (await stack.get(path, key=key))["items"]}

    await stack.settled()
    every, seen = await nodes(wide), await nodes(narrow)
    assert {"src/takeover.py", "postgresql", "src/open.py", "redis"} <= set(every)
    assert {"src/open.py", "redis"} <= set(seen)
    hidden = {name: every[name] for name in every.keys() - seen.keys()}
    assert {"src/takeover.py", "postgresql"} <= set(hidden)
    for node in hidden.values():
        for path in ("", "/history", "/provenance", "/subgraph"):
            for id in (node, node[-8:]):
                found = await stack.call("GET", f"/v1/memories/{id}{path}", key=narrow)
                assert found.status == 404, (path, found)
    counted = await stack.get("/v1/graph/stats", key=narrow)
    assert counted["nodes"] == len(seen) + 1
    impact = await stack.get("/v1/impact?entity=postgresql&project=shop", key=narrow)
    assert (impact["items"], impact["entities"]) == ([], [])
    headers = {"Authorization": f"Bearer {narrow}"}
    async with stack.http.get(f"{stack.url}/v1/export", headers=headers) as exported:
        text = await exported.text()
    assert "takeover" not in text
    assert "postgresql" not in text
    assert "src/open.py" in text
    around = await stack.get(f"/v1/memories/{mine['id']}/subgraph", key=narrow)
    assert len(around["nodes"]) == len(seen) + 1


async def test_a_doubt_from_another_scope_names_neither_its_file_nor_its_commit(
    stack: Stack,
) -> None:
    hidden = {"scope": "project/mill", "git": {"files": ["src/secret_wheel.py"]}}
    source = (await stack.post("/v1/remember", {"content": "The wheel turns", **hidden}))["id"]
    mine = await _note(
        stack, stack.key, "project/shop", edges=[{"to": source, "type": "depends_on"}]
    )
    sha = "d" * 40
    commit = {"sha": sha, "subject": "Sell it", "committed_at": "2099-01-01T00:00:00Z"}
    files = [{"path": "src/secret_wheel.py", "status": "deleted"}]
    change = {"project": "mill", "branch": "main", "after": sha, "commits": [commit]}

    await stack.settled()
    await stack.post("/v1/git/changes", {**change, "files": files})

    async def doubted() -> bool:
        return bool((await stack.get(f"/v1/memories/{mine}"))["staleness"])

    await eventually(doubted)
    narrow = stack.key_of(reads=("project/shop",), writes=("project/shop",))
    [shown] = (await stack.post("/v1/recall", {"query": "kestrel"}, key=narrow))["memories"]
    assert shown["stale_reason"] == "a memory of another scope that it depends on is in doubt"
    for path in ("/v1/context?project=shop", "/v1/stale", "/v1/memories", "/v1/export"):
        told = str((await stack.call("GET", path, key=narrow)).body)
        assert "secret_wheel" not in told
        assert "Sell it" not in told
    everything = await stack.get("/v1/stale?project=shop")
    assert everything["items"][0]["evidence"][0]["path"] == "src/secret_wheel.py"
