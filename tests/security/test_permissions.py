"""What keys and their grants may read, write and find."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from reverie.domain.access.principals import KeyRole
from reverie.store.platform.api_keys import list_keys, revoke_key
from tests.support.stack import Reply, Stack, eventually
from tests.support.tables import counts, run, value

ANY = str(uuid4())
SHA = "c" * 40
CHANGE = {
    "project": "a",
    "branch": "main",
    "after": SHA,
    "commits": [{"sha": SHA, "subject": "s", "committed_at": "2099-01-01T00:00:00Z"}],
    "files": [{"path": "src/secret.py", "status": "deleted"}],
}
CALLS: list[tuple[str, str, str, Any]] = [
    ("ingest", "POST", "/v1/remember", {"content": "x"}),
    ("dream", "GET", "/v1/dreams", None),
    ("staleness", "POST", "/v1/git/changes", CHANGE),
    ("recall", "POST", "/v1/recall", {"query": "x"}),
]
"""One of each service: `test_unread_bodies.py` tries every call without a key and with a wrong
one."""


def _statuses(replies: list[Reply]) -> list[int]:
    return [one.status for one in replies]


def _key_of(stack: Stack, agent: str) -> str:
    """The id of the tenant's one key of an agent."""
    keys = [one for one in list_keys(stack.admin_url) if one.tenant == stack.tenant]
    [found] = [one.id for one in keys if one.agent == agent]
    return found


async def test_a_revoked_expired_or_altered_key_is_refused_from_the_next_call_on(
    stack: Stack,
) -> None:
    revoked, expired = stack.key_of(agent="gone"), stack.key_of(agent="late")
    for key in (revoked, expired):
        assert (await stack.call("GET", "/v1/memories", key=key)).status == 200
    revoke_key(stack.admin_url, _key_of(stack, "gone"))
    ended = "update api_key set expires_at = now() - interval '1 s'"
    ended += " where agent = 'late' and tenant = %s"
    run(stack.admin_url, ended, stack.number())
    before = counts(stack.admin_url, stack.number())
    wrong = [f"Bearer {key}" for key in (revoked, expired, f"{stack.key}x", stack.key[:-1])]
    wrong += ["", "Bearer", f"Basic {stack.key}", stack.key, f"Bearer {stack.key} more"]
    for (service, method, path, body), header in product(CALLS, wrong):
        for url in (stack.url, stack.urls[service]):
            sent = {"json": body, "headers": {"Authorization": header}}
            async with stack.http.request(method, url + path, **sent) as answer:
                assert answer.status == 401, (path, header)
                assert (await answer.json(content_type=None))["code"] == "unauthenticated"
                assert "WWW-Authenticate" in answer.headers
    assert counts(stack.admin_url, stack.number()) == before


async def _session(stack: Stack, key: str | None = None, **start: Any) -> str:
    fields = {"agent": "claude", "project": "a", **start}
    return str((await stack.post("/v1/sessions/start", fields, key=key))["session"])


async def _say(stack: Stack, session: str, content: str, key: str | None = None) -> Reply:
    turns = [{"role": "user", "content": content}]
    return await stack.call("POST", "/v1/turns", {"session": session, "turns": turns}, key)


@pytest.mark.parametrize("role", [KeyRole.READER, KeyRole.CI])
async def test_a_key_without_write_access_changes_nothing(stack: Stack, role: KeyRole) -> None:
    session = await _session(stack)
    key = stack.key_of(role=role, project="a")
    before = counts(stack.admin_url, stack.number())
    in_a = {"content": "x", "scope": "project/a"}
    replies = [
        await stack.call("POST", "/v1/remember", in_a, key),
        await stack.call("POST", "/v1/remember", {"content": "x"}, key),
        await stack.call("POST", "/v1/sessions/start", {"agent": "x", "project": "a"}, key),
        await _say(stack, session, "x", key),
        await stack.call("POST", f"/v1/sessions/{session}/end", {}, key),
        await stack.call("POST", "/v1/dream", {}, key),
        await stack.call("POST", "/v1/dream", {"scope": "project/a"}, key),
        await stack.call("POST", "/v1/dream", {"session": session}, key),
    ]
    assert _statuses(replies) == [403] * len(replies)
    batch = await stack.post("/v1/remember/batch", {"items": [in_a, in_a]}, key=key)
    assert [one["status"] for one in batch["items"]] == [403, 403]
    assert counts(stack.admin_url, stack.number()) == before


async def test_git_changes_are_accepted_from_keys_of_that_project_only(stack: Stack) -> None:
    ci = stack.key_of(role=KeyRole.CI, reads=["project/a"], writes=["project/a"])
    writer = stack.key_of(role=KeyRole.WRITER, writes=["project/a", "project/a/*"])
    reader = stack.key_of(role=KeyRole.READER)
    other = {**CHANGE, "project": "b"}
    asked = [
        await stack.call("POST", "/v1/git/changes", CHANGE, ci),
        await stack.call("POST", "/v1/git/changes", CHANGE, writer),
        await stack.call("POST", "/v1/git/changes", other, ci),
        await stack.call("POST", "/v1/git/changes", other, writer),
        await stack.call("POST", "/v1/git/changes", CHANGE, reader),
    ]
    assert _statuses(asked) == [202, 202, 403, 403, 403]
    assert asked[1].body["duplicate"]
    told = "select count(*) from git_event where tenant = %s"
    assert value(stack.admin_url, told, stack.number()) == 1


async def test_a_dream_without_scope_or_session_uses_the_keys_own_scope(stack: Stack) -> None:
    key = stack.key_of(project="a", writes=["project/a", "global"])
    mine = await stack.call("POST", "/v1/dream", {}, key)
    assert (mine.status, mine.body["scope"]) == (202, "project/a")
    assert (await stack.post("/v1/dream", None))["scope"] == "global"
    assert (await stack.call("POST", "/v1/dream", {"scope": "project/b"}, key)).status == 403


class Fenced(NamedTuple):
    """Memories on both sides of a fence, tied by edges, and a key that sees one side."""

    stack: Stack
    key: str
    mine: str
    theirs: str


@pytest.fixture
async def fenced(stack: Stack) -> Fenced:
    """`mine` in project/a and `theirs` in project/b name each other and the same file."""
    text = "the zebra cache lives in src/zebra/cache.py"
    other = {"content": text, "scope": "project/b", "key": "z"}
    theirs = (await stack.post("/v1/remember", other))["id"]
    edges = [{"to": theirs, "type": "depends_on"}]
    own = {"content": f"{text} too", "scope": "project/a", "edges": edges}
    mine = (await stack.post("/v1/remember", own))["id"]
    key = stack.key_of(role=KeyRole.WRITER, reads=["project/a"], writes=["project/a"], project="a")
    await stack.settled()
    return Fenced(stack, key, mine, theirs)


async def test_memories_outside_the_grants_cannot_be_written(fenced: Fenced) -> None:
    stack, key, _, _ = fenced
    session = await _session(stack, project="b")
    await stack.settled()
    before = counts(stack.admin_url, stack.number())
    in_b = {"content": "mine now", "scope": "project/b"}
    taken = {**in_b, "key": "z", "supersede_reason": "because"}
    replies = [
        await stack.call("POST", "/v1/remember", in_b, key),
        await stack.call("POST", "/v1/remember", taken, key),
        await stack.call("POST", "/v1/remember", {**in_b, "scope": "global"}, key),
        await stack.call("POST", "/v1/remember", {**in_b, "scope": "project/a/feature/x"}, key),
        await stack.call("POST", "/v1/sessions/start", {"agent": "x", "project": "b"}, key),
        await stack.call("POST", "/v1/dream", {"scope": "project/b"}, key),
    ]
    assert _statuses(replies) == [403] * len(replies)
    unseen = [
        await _say(stack, session, "x", key),
        await stack.call("POST", f"/v1/sessions/{session}/end", {}, key),
        await stack.call("POST", "/v1/dream", {"session": session}, key),
        await stack.call("POST", "/v1/remember", {"content": "x", "session": session}, key),
    ]
    assert _statuses(unseen) == [404] * len(unseen)
    assert counts(stack.admin_url, stack.number()) == before


async def test_no_scope_and_no_form_of_an_id_opens_a_memory_outside_the_grants(
    fenced: Fenced,
) -> None:
    stack, key, _, theirs = fenced
    replies = [
        await stack.call("POST", "/v1/recall", {"query": "zebra", "scopes": ["project/b"]}, key),
        await stack.call(
            "POST", "/v1/recall", {"query": "zebra", "scopes": ["project/a", "global"]}, key
        ),
        await stack.call("GET", "/v1/context?project=b", key=key),
        await stack.call("GET", "/v1/context?scopes=project/b", key=key),
        await stack.call("GET", "/v1/memories?scope=project/b", key=key),
        await stack.call("GET", "/v1/stale?project=b", key=key),
        await stack.call("GET", "/v1/stale?scope=project/b", key=key),
        await stack.call("GET", "/v1/dreams?scope=project/b", key=key),
    ]
    assert _statuses(replies) == [403] * len(replies)
    forms = [theirs, theirs.upper(), theirs.replace("-", ""), theirs[-8:], f"{{{theirs}}}"]
    hidden = [await stack.call("GET", f"/v1/memories/{form}", key=key) for form in forms]
    assert _statuses(hidden) == [404] * len(forms)
    assert (await stack.get(f"/v1/memories/{theirs[-8:]}"))["id"] == theirs
    link = {"content": "x", "edges": [{"to": theirs, "type": "relates_to"}]}
    absent = {"content": "x", "edges": [{"to": ANY, "type": "relates_to"}]}
    refused = await stack.call("POST", "/v1/remember", link, key)
    missing = await stack.call("POST", "/v1/remember", absent, key)
    told = refused.body["detail"].replace(theirs, "?"), missing.body["detail"].replace(ANY, "?")
    assert (refused.status, missing.status) == (422, 422)
    assert told[0] == told[1]


async def test_memories_outside_the_grants_appear_in_no_answer(fenced: Fenced) -> None:
    stack, key, mine, theirs = fenced
    await stack.post("/v1/git/changes", {**CHANGE, "project": "b", "files": [
        {"path": "src/zebra/cache.py", "status": "deleted"}]})  # fmt: skip

    async def stale() -> Any:
        return (await stack.get("/v1/stale?project=b"))["items"]

    await eventually(stale)
    asked = {"query": "zebra cache", "include": ["turns", "archived"], "kinds": ["file", "context"]}
    seen = [
        await stack.post("/v1/recall", {"query": "zebra cache"}, key=key),
        await stack.post("/v1/recall", asked, key=key),
        await stack.get("/v1/memories", key=key),
        await stack.get("/v1/memories?kind=file", key=key),
        await stack.get("/v1/context", key=key),
        await stack.get("/v1/stale", key=key),
        await stack.get("/v1/dreams", key=key),
        await stack.get(f"/v1/memories/{mine}", key=key),
    ]
    assert mine in str(seen[0])
    assert not [one for one in seen if theirs in str(one) or "project/b" in str(one)]
    kinds = [near["kind"] for near in seen[-1]["neighbours"]]
    assert kinds == ["file"]
    own = await stack.get(f"/v1/memories/{mine}")
    assert theirs in [near["id"] for near in own["neighbours"]]
    # A word that others alone use finds nothing.
    await stack.post("/v1/remember", {"content": "xylophone", "scope": "project/b"})
    found = await stack.post("/v1/recall", {"query": "xylophone", "limit": 100}, key=key)
    assert [hit for hit in found["memories"] if "words" in hit["arms"]] == []


async def test_a_transcript_is_read_by_its_own_agent_only(stack: Stack) -> None:
    claude, cursor = stack.key_of(agent="claude"), stack.key_of(agent="cursor")
    session = await _session(stack, claude, agent="cursor")
    said = "the quokka migration needs a second index"
    assert (await _say(stack, session, said, claude)).status == 200
    hidden = [
        await stack.call("GET", f"/v1/sessions/{session}/turns", key=cursor),
        await _say(stack, session, "let me in", cursor),
        await stack.call("POST", f"/v1/sessions/{session}/end", {}, cursor),
        await stack.call("POST", "/v1/dream", {"session": session}, cursor),
        await stack.call("GET", f"/v1/context?session={session}", key=cursor),
        await stack.call("POST", "/v1/recall", {"query": "quokka", "session": session}, cursor),
    ]
    assert _statuses(hidden) == [404] * len(hidden)
    asked = {"query": "quokka migration", "include": ["turns"]}
    other = await stack.post("/v1/recall", asked, key=cursor)
    own = await stack.post("/v1/recall", asked, key=claude)
    assert (other["memories"], [hit["content"] for hit in own["memories"]]) == ([], [said])
    [turn] = (await stack.get(f"/v1/sessions/{session}/turns", key=claude))["items"]
    assert turn["content"] == said


async def test_a_person_finds_no_transcript_of_another_agent_in_a_session(
    stack: Stack,
) -> None:
    whose = {}
    for agent in ("claude", "cursor", "claude/sub/one"):
        whose[agent] = await _session(stack, stack.key, agent=agent)
        await _say(stack, whose[agent], f"the quokka says {agent}", stack.key)
    asked = {"query": "quokka", "include": ["turns"]}
    for agent, session in whose.items():
        found = (await stack.post("/v1/recall", {**asked, "session": session}))["memories"]
        assert [hit["content"] for hit in found] == [f"the quokka says {agent}"]
    everywhere = (await stack.post("/v1/recall", asked))["memories"]
    assert {hit["provenance"]["agent"] for hit in everywhere} == set(whose)


async def test_an_external_id_leads_to_no_session_that_the_key_may_not_write(stack: Stack) -> None:
    narrow = stack.key_of(role=KeyRole.WRITER, reads=["project/b"], writes=["project/b"])
    theirs = await _session(stack, external_id="chat-1", project="a")
    start = {"agent": "claude", "project": "b", "external_id": "chat-1"}
    answer = await stack.call("POST", "/v1/sessions/start", start, narrow)
    assert answer.status == 409
    assert theirs not in str(answer.body)
    assert "project/a" not in str(answer.body)


async def test_two_tenants_with_the_same_words_see_nothing_of_each_other(stack: Stack) -> None:
    tenants = [stack.apart() for _ in range(2)]
    mine, theirs = tenants
    one, two = (own.key_of(role=KeyRole.ADMIN, agent="claude", project="p") for own in tenants)
    body = {"content": "we deploy on fridays", "key": "deploys", "scope": "project/p"}
    start = {"agent": "claude", "project": "p", "external_id": "chat-1"}
    ids: dict[str, list[str]] = {}
    for key in (one, two):
        headers = {"Idempotency-Key": "the same"}
        made = await stack.call("POST", "/v1/remember", body, key, headers=headers)
        assert (made.status, made.body["status"]) == (201, "created")
        assert "Idempotent-Replayed" not in made.headers
        session = await stack.post("/v1/sessions/start", start, key=key)
        assert (await _say(stack, session["session"], "fridays, then", key)).body["accepted"] == 1
        told = await stack.post("/v1/git/changes", {**CHANGE, "project": "p"}, key=key)
        assert not told["duplicate"]
        ids[key] = [made.body["id"], session["session"], told["event"]]
    assert not set(ids[one]) & set(ids[two])
    for key, other in ((one, two), (two, one)):
        listed = (await stack.get("/v1/memories", key=key))["items"]
        assert [memory["id"] for memory in listed] == ids[key][:1]
        asked = {"query": "fridays", "include": ["turns"]}
        found = await stack.post("/v1/recall", asked, key=key)
        assert sorted(hit["type"] for hit in found["memories"]) == ["memory", "turn"]
        assert not [foreign for foreign in ids[other] if foreign in str(found)]
        memory, session, _ = ids[other]
        gone = [
            await stack.call("GET", f"/v1/memories/{memory}", key=key),
            await stack.call("GET", f"/v1/memories/{memory[-8:]}", key=key),
            await stack.call("GET", f"/v1/sessions/{session}/turns", key=key),
            await _say(stack, session, "x", key),
        ]
        assert _statuses(gone) == [404] * len(gone)
    changed = {**body, "content": "we deploy daily", "supersede_reason": "it got better"}
    await stack.post("/v1/remember", changed, key=one)
    kept = await stack.get(f"/v1/memories/{ids[two][0]}", key=two)
    assert (kept["status"], kept["base_confidence"]) == ("active", 0.8)
    await theirs.settled()
    before = counts(stack.admin_url, theirs.number())
    assert (await stack.call("DELETE", "/v1/admin/projects/p", key=one)).status == 200
    confirmed = {"confirm": mine.tenant}
    assert (await mine.call("DELETE", "/v1/admin/tenant", confirmed)).status == 200
    assert counts(stack.admin_url, theirs.number()) == before


async def test_a_score_does_not_reveal_what_another_tenant_wrote(stack: Stack) -> None:
    one, two = stack.apart().key, stack.apart().key
    await stack.post("/v1/remember", {"content": "the walrus protocol"}, key=one)
    asked = {"query": "walrus protocol"}
    before = await stack.post("/v1/recall", asked, key=one)
    for n in range(5):
        await stack.post("/v1/remember", {"content": f"walrus number {n}"}, key=two)
    after = await stack.post("/v1/recall", asked, key=one)
    words = [[hit["arms"]["words"] for hit in got["memories"]] for got in (before, after)]
    assert words[0] == words[1] == [1]
    assert len(after["memories"]) == 1
