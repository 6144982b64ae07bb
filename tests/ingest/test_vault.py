"""The vault: entries, sealed secrets, key rotation, removal of secrets elsewhere."""

from __future__ import annotations

import base64
import json
import re

from reverie.store.db.encryption import create_cipher
from reverie.store.vault.vault_key_rotation import reencrypt_secrets
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.ingest.test_vault_redaction import finish_backfill
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import TABLES, asked, rows

OLD = base64.b64encode(b"o" * 32).decode()
NEW = base64.b64encode(b"n" * 32).decode()
PLAIN = "correct" + " horse battery staple"
"""A value that no pattern would take for a secret."""


def unnumbered(text: str) -> str:
    """The text without the ids in its placeholders."""
    return re.sub(r"#[0-9a-f]{10}\]", "]", text)


def everything(stack: Stack) -> str:
    """All rows of all tables that are of the tenant or of none, as text."""
    names = [name for (name,) in rows(stack.admin_url, TABLES, "reverie")]
    query = "select attrelid::regclass::text from pg_attribute where attname = 'tenant'"
    of_tenants = {name for (name,) in rows(stack.admin_url, query)}
    of_this = f" where tenant = {stack.number()}"
    return "\n".join(
        str(row)
        for name in names
        for row in asked(
            stack.admin_url,
            f'select t::text from "{name}" t{of_this if name in of_tenants else ""}'.encode(),
            (),
        )
    )


async def test_state_is_stored_read_listed_and_removed_by_scope_and_version(stack: Stack) -> None:
    put = await stack.call("PUT", "/v1/vault/builds?scope=project/a", {"value": {"n": 1}})
    assert (put.status, put.body["version"], put.body["secret"]) == (200, 1, False)
    stale = await stack.call("PUT", "/v1/vault/builds?scope=project/a", {"value": 2, "version": 7})
    assert (stale.status, stale.body["code"]) == (409, "conflict")
    again = {"value": {"n": 2}, "version": 1}
    assert (await stack.call("PUT", "/v1/vault/builds?scope=project/a", again)).body["version"] == 2
    read = await stack.get("/v1/vault/builds?scope=project/a")
    assert (read["value"], read["version"]) == ({"n": 2}, 2)
    stranger = stack.key_of(reads=["project/b"], writes=["project/b"])
    path = "/v1/vault/builds?scope=project/a"
    for method, body, status in (
        ("GET", None, 404),
        ("DELETE", None, 404),
        ("PUT", {"value": 1}, 403),
    ):
        assert (await stack.call(method, path, body, stranger)).status == status, method
    assert (await stack.get("/v1/vault", key=stranger))["items"] == []
    other = stack.apart().key
    assert (await stack.call("GET", path, key=other)).status == 404
    for n in range(3):
        await stack.call("PUT", f"/v1/vault/k{n}", {"value": n})
    listed = await stack.walked("/v1/vault", 2)
    assert [one["key"] for one in listed] == ["k0", "k1", "k2", "builds"]
    assert (await stack.call("DELETE", path)).body["deleted"]
    assert (await stack.call("GET", path)).status == 404


async def test_a_secret_is_encrypted_and_leaves_no_trace_in_memory_turns_or_tables(
    stack: Stack,
) -> None:
    sent = {"value": {"pin": PLAIN}, "secret": True}
    assert (await stack.call("PUT", "/v1/vault/door", sent)).status == 200
    told = await stack.post(
        "/v1/remember", {"content": f"The door opens by {PLAIN} as agreed", "tags": [PLAIN]}
    )
    assert told["redactions"] == 2
    session = (await stack.post("/v1/sessions/start", {"agent": "claude"}))["session"]
    turns = [{"role": "tool", "tool": "bash", "content": f"$ open\n{PLAIN}\n{json.dumps(PLAIN)}"}]
    said = await stack.post("/v1/turns", {"session": session, "turns": turns})
    assert said["redactions"] == 2
    memory = await stack.get(f"/v1/memories/{told['id']}")
    assert unnumbered(memory["content"]) == "The door opens by [REDACTED_VAULT:door] as agreed"
    narrow = stack.key_of(reads=["project/a"], writes=["project/a"])
    hidden = await stack.post(
        "/v1/remember", {"content": f"it is {PLAIN} here", "scope": "project/a"}, key=narrow
    )
    seen = (await stack.get(f"/v1/memories/{hidden['id']}"))["content"]
    assert unnumbered(seen) == "it is [REDACTED_VAULT] here"
    await stack.settled()
    assert PLAIN not in everything(stack)
    assert PLAIN not in json.dumps(await stack.get("/v1/vault"))
    found = await stack.post("/v1/recall", {"query": "door pin"})
    assert PLAIN not in json.dumps(found)
    assert (await stack.get("/v1/vault/door"))["value"] == {"pin": PLAIN}
    kept = await stack.call("PUT", "/v1/vault/door", {"value": PLAIN + "!"})
    assert kept.body["secret"] is True
    other = stack.apart().key
    free = await stack.post("/v1/remember", {"content": f"a poem: {PLAIN}"}, key=other)
    assert free["redactions"] == 0
    await stack.call("DELETE", "/v1/vault/door")
    later = await stack.post("/v1/remember", {"content": f"now {PLAIN} is said"})
    assert later["redactions"] == 0


async def test_a_credential_not_marked_secret_is_refused_by_value_and_by_key(stack: Stack) -> None:
    token = "ghp" + "_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
    for path, value, field in (
        ("/v1/vault/x", {"note": f"use {token}"}, "value"),
        ("/v1/vault/db_password", "hunter" + "2hunter", "value"),
        (f"/v1/vault/{token}", 1, "key"),
        ("/v1/vault/suggestions", 1, "key"),
        ("/v1/vault/none", None, "value"),
    ):
        reply = await stack.call("PUT", path, {"value": value})
        assert (reply.status, reply.body["field"]) == (422, field), path
    assert token not in everything(stack)


async def test_after_a_rotation_the_old_key_can_be_removed(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with running_stack(database, nats_url, model_home(), vault_key=OLD) as vault:
        for n in range(3):
            secret = {"value": f"value-{n}-x8Kq2", "secret": True}
            await vault.call("PUT", f"/v1/vault/s{n}", secret)
        for n in range(2):
            await vault.call("PUT", "/v1/vault/old", {"value": f"gone-{n}-x8Kq2", "secret": True})
        told_before = await vault.post("/v1/remember", {"content": "it was gone-1-x8Kq2"})
        await vault.call("DELETE", "/v1/vault/old")
        gone = rows(
            vault.admin_url, "update vault set key_id = 'gone' where key = 's2' returning tenant"
        )
        steps: list[tuple[int, int]] = []
        done = reencrypt_secrets(
            vault.admin_url, create_cipher(f"{NEW},{OLD}"), lambda *at: steps.append(at)
        )
        assert (done.count, steps) == (4, [(2, 5), (4, 5)])
        assert [vars(one) for one in done.unreadable] == [
            {"tenant": gone[0][0], "scope": "global", "key": "s2"}
        ]
        assert reencrypt_secrets(vault.admin_url, create_cipher(NEW), lambda *_: None).count == 0
        lost = await vault.call("GET", "/v1/vault/s1")
        assert (lost.status, "vault_key" in lost.body["detail"]) == (503, True)
    # The old system has ended: it would take the restoring up, and could not read what to restore.
    async with running_stack(database, nats_url, model_home(), vault_key=NEW) as vault:
        assert (await vault.get("/v1/vault/s1"))["value"] == "value-1-x8Kq2"
        listed = await vault.get("/v1/vault")
        assert [one["readable"] for one in listed["items"]] == [True, True, False]
        told = await vault.post("/v1/remember", {"content": "it is value-0-x8Kq2"})
        assert told["redactions"] == 1
        restore = await vault.call("DELETE", "/v1/vault/old?restore=true")
        assert restore.status == 200
        assert (await vault.call("GET", "/v1/vault/s2")).status == 503
        assert (await vault.call("DELETE", "/v1/vault/s2")).body["deleted"]
        again = {"value": "value-2-y", "secret": True}
        assert (await vault.call("PUT", "/v1/vault/s2", again)).body["version"] == 1

        async def is_restored() -> bool:
            memory = await vault.get(f"/v1/memories/{told_before['id']}")
            return bool(memory["content"] == "it was gone-1-x8Kq2")

        await eventually(is_restored)


async def test_without_a_master_key_a_secret_is_refused_with_the_setting_to_set(
    alone: Stack,
) -> None:
    reply = await alone.call("PUT", "/v1/vault/x", {"value": "abcdefg", "secret": True})
    assert (reply.status, reply.body["field"]) == (422, "secret")
    assert "vault_key" in reply.body["detail"]


async def test_counters_blobs_and_often_rewritten_keys_get_a_hint_to_the_vault(
    stack: Stack,
) -> None:
    for content in ("41", "builds: 1207", '{"a": [1, 2], "b": "c"}'):
        told = await stack.post("/v1/remember", {"content": content})
        assert any("vault" in hint for hint in told["hints"]), content
    told = await stack.post("/v1/remember", {"content": "The port of the gateway is 3456"})
    assert not any("vault" in hint for hint in told["hints"])
    steps = [
        {"content": f"step {n} of the run is done", "key": "step", "supersede_reason": "on"}
        for n in range(103)
    ]
    await stack.post("/v1/remember/batch", {"items": steps[:-1]})
    hints = (await stack.post("/v1/remember", steps[-1]))["hints"]
    assert any(hint.startswith("step was written 1") for hint in hints)
    items = [{"content": "one more", "key": "step", "supersede_reason": "on"}, {"content": "new"}]
    many = (await stack.post("/v1/remember/batch", {"items": items}))["items"]
    assert [[h for h in one["hints"] if "vault" in h][:1] != [] for one in many] == [True, False]
    busy, *states = (await stack.get("/v1/vault/suggestions"))["items"]
    assert (busy["key"], busy["scope"], busy["versions"] > 100) == ("step", "global", True)
    assert len(states) == 3
    assert all(one["memory"] for one in states)
    assert await stack.walked("/v1/vault/suggestions", 2) == [busy, *states]


async def test_text_stored_before_a_secret_was_put_is_redacted_everywhere(stack: Stack) -> None:
    start = {"agent": "claude", "project": "shop", "branch": f"fix-{PLAIN}"}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    body = {"content": f"The door opens by {PLAIN} as agreed", "session": session, "key": "door"}
    first = await stack.post("/v1/remember", body)
    more = {"tags": [PLAIN], "metadata": {"codes": {PLAIN: [70419938215]}}, "summary": PLAIN}
    old = await stack.post("/v1/remember", {"content": "The port is 3456", **more})
    twins = [
        await stack.post("/v1/remember", {"content": f"we say {word} here"})
        for word in (PLAIN, "[REDACTED_VAULT]")
    ]
    told = {**body, "content": f"{PLAIN} opens the gate", "supersede_reason": f"not {PLAIN} alone"}
    second = await stack.post("/v1/remember", told)
    why = {"from": old["id"], "to": first["id"], "type": "relates_to", "metadata": {"by": PLAIN}}
    await stack.post("/v1/links", why)
    gone = await stack.post("/v1/remember", {"content": f"forget that {PLAIN} was said"})
    await stack.call("DELETE", f"/v1/memories/{gone['id']}")
    turns = [{"role": role, "content": f"say {PLAIN} now"} for role in ("user", "tool")]
    await stack.post("/v1/turns", {"session": session, "turns": turns})
    await stack.post(f"/v1/sessions/{session}/end", {"summary": f"we found {PLAIN}"})
    other = stack.apart().key
    theirs = await stack.post("/v1/remember", {"content": f"a poem: {PLAIN}"}, key=other)
    assert (await stack.get("/v1/vault/redaction-status"))["state"] == "none"

    sent = {"value": {"door": PLAIN, "n": 70419938215, "user": "agreed"}, "secret": True}
    put = await stack.call("PUT", "/v1/vault/gate", sent)
    assert "/v1/vault/redaction-status" in put.body["hints"][0]
    await finish_backfill(stack)
    assert (await stack.get("/v1/vault/redaction-status"))["redacted"] >= 10
    kept = everything(stack).splitlines()
    assert [row for row in kept if PLAIN in row and theirs["id"] not in row] == []
    assert "70419938215" not in "\n".join(kept)
    memory = await stack.get(f"/v1/memories/{first['id']}")
    assert unnumbered(memory["content"]) == "The door opens by [REDACTED_VAULT] as agreed"
    assert memory["status"] == "superseded"
    changed = await stack.get(f"/v1/memories/{second['id']}")
    assert unnumbered(changed["content"]) == "[REDACTED_VAULT] opens the gate"
    history = await stack.get(f"/v1/memories/{second['id']}/history")
    assert "a secret of the vault was taken out" in json.dumps(history)
    found = await stack.post("/v1/recall", {"query": "which words open the gate"})
    assert second["id"] in [one["id"] for one in found["memories"]]
    same = [await stack.get(f"/v1/memories/{one['id']}") for one in twins]
    assert {unnumbered(one["content"]) for one in same} == {"we say [REDACTED_VAULT] here"}
    lost = await stack.post("/v1/recall", {"query": "horse staple"})
    assert PLAIN not in json.dumps(lost)
    assert rows(stack.admin_url, "select content from memory where id = %s", theirs["id"]) == [
        (f"a poem: {PLAIN}",)
    ]


async def test_a_session_whose_start_contained_a_later_secret_is_found_when_restarted(
    stack: Stack,
) -> None:
    always = {"content": f"Always say {PLAIN} at the door", "kind": "convention", "pinned": True}
    await stack.post("/v1/remember", {**always, "scope": "project/shop"})
    start, once = {"agent": "claude", "project": "shop"}, {"Idempotency-Key": "once"}
    first = await stack.call("POST", "/v1/sessions/start", start, headers=once)
    assert PLAIN in first.body["context"]
    await stack.call("PUT", "/v1/vault/gate", {"value": PLAIN, "secret": True})
    await finish_backfill(stack)
    again = await stack.call("POST", "/v1/sessions/start", start, headers=once)
    assert again.body["session"] == first.body["session"]
    assert PLAIN not in again.body["context"]


async def test_long_numbers_can_be_secrets_and_weak_secrets_are_reported(stack: Stack) -> None:
    put = await stack.call("PUT", "/v1/vault/pin", {"value": 81502736419, "secret": True})
    assert "/v1/vault/redaction-status" in put.body["hints"][0]
    for value in (True, 41, "abc", "migration", "2024-05-01", {"a": "should", "d": "Postgres"}):
        weak = await stack.call("PUT", "/v1/vault/flag", {"value": value, "secret": True})
        assert "not redacted in texts: it is too weak" in weak.body["hints"][0]
        assert (await stack.get("/v1/vault/flag"))["value"] == value
    held = {"value": json.dumps({"host": "localhost", "word": PLAIN}), "secret": True}
    await stack.call("PUT", "/v1/vault/held", held)
    body = {
        "content": f"Dial 81502736419, not 1815027364190, on localhost; say {PLAIN}",
        "metadata": {"pin": 81502736419, "true": True, "n": [81502736419, 41]},
    }
    told = await stack.post("/v1/remember", body)
    memory = await stack.get(f"/v1/memories/{told['id']}")
    assert unnumbered(memory["content"]) == (
        "Dial [REDACTED_VAULT:pin], not 1815027364190, on localhost; say [REDACTED_VAULT:held]"
    )
    mark = "[REDACTED_VAULT:pin]"
    metadata = json.loads(unnumbered(json.dumps(memory["metadata"])))
    assert metadata == {"pin": mark, "true": True, "n": [mark, 41]}


async def test_a_scope_that_contains_a_credential_is_refused(stack: Stack) -> None:
    await stack.call("PUT", "/v1/vault/gate", {"value": "tulip-7sEv3n", "secret": True})
    shaped = "sk-ant-api03-" + "a1b2c3d4e5" * 4
    for name in ("tulip-7sEv3n", shaped):
        for scope in (f"project/{name}", f"project/{name}/topic/x"):
            reply = await stack.call("POST", "/v1/remember", {"content": "hello", "scope": scope})
            assert (reply.status, reply.body["field"]) == (422, "scope"), scope
            assert name not in json.dumps(reply.body)
    started = await stack.post("/v1/sessions/start", {"agent": "a", "project": "tulip-7sEv3n"})
    assert "tulip-7s" not in started["scope"]
    assert "tulip-7sEv3n" not in everything(stack)
