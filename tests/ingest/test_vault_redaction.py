"""Vault secrets are redacted only if strong, only in scopes of the writer, and with an undo."""

from __future__ import annotations

import json

import pytest

from reverie.domain.access.principals import KeyRole
from reverie.domain.redaction.vault_secrets import is_redactable
from tests.support.stack import Stack, eventually
from tests.support.tables import rows

STRONG = "kV7" + "qz-Xw2m-Rt9p-Lb4d"


async def finish_backfill(stack: Stack) -> None:
    """Waits until a pass over the stored texts is over."""

    async def is_searched() -> bool:
        return bool((await stack.get("/v1/vault/redaction-status"))["passes"])

    await eventually(is_searched)


async def content_of(stack: Stack, memory: str) -> str:
    return str((await stack.get(f"/v1/memories/{memory}"))["content"])


async def test_a_secret_changes_no_text_in_a_scope_that_its_writer_may_not_write(
    stack: Stack,
) -> None:
    text = f"We run the migration with {STRONG} on Postgres"
    places = {
        scope: (await stack.post("/v1/remember", {"content": text, "scope": scope}))["id"]
        for scope in ("project/a", "project/b", "global")
    }
    narrow = stack.key_of(reads=["project/a"], writes=["project/a"])
    sent = {"value": {"a": STRONG, "b": "migration", "c": "Postgres"}, "secret": True}
    put = await stack.call("PUT", "/v1/vault/k?scope=project/a", sent, key=narrow)
    assert put.status == 200
    await finish_backfill(stack)
    assert "[REDACTED_VAULT" in await content_of(stack, places["project/a"])
    assert "migration" in await content_of(stack, places["project/a"])
    assert await content_of(stack, places["project/b"]) == text
    assert await content_of(stack, places["global"]) == text
    for scope, count in (("project/a", 1), ("project/b", 0), ("global", 0)):
        body = {"content": f"later {STRONG} too", "scope": scope}
        assert (await stack.post("/v1/remember", body))["redactions"] == count


async def test_counts_of_redactions_are_given_only_to_who_reads_every_scope(stack: Stack) -> None:
    await stack.post("/v1/remember", {"content": f"say {STRONG}", "scope": "project/b"})
    narrow = stack.key_of(reads=["project/a"], writes=["*"])
    sent = {"value": STRONG, "secret": True}
    assert (await stack.call("PUT", "/v1/vault/k?scope=project/a", sent, key=narrow)).status == 200
    await finish_backfill(stack)
    seen = await stack.get("/v1/vault/redaction-status", key=narrow)
    assert (seen["redacted"], seen["examined"]) == (None, None)
    assert (await stack.get("/v1/vault/redaction-status"))["redacted"] >= 1


async def test_an_administrator_puts_back_what_a_deleted_entry_had_redacted(stack: Stack) -> None:
    text = f"The build is called {STRONG} since May"
    told = await stack.post("/v1/remember", {"content": text, "tags": [STRONG], "key": "build"})
    session = (await stack.post("/v1/sessions/start", {"agent": "claude"}))["session"]
    turns = [{"role": "user", "content": f"deploy {json.dumps(STRONG)}"}]
    await stack.post("/v1/turns", {"session": session, "turns": turns})
    first = {"value": STRONG, "secret": True}
    await stack.call("PUT", "/v1/vault/k", first)
    await finish_backfill(stack)
    later = await stack.post("/v1/remember", {"content": f"{STRONG} was rolled back"})
    assert STRONG not in await content_of(stack, told["id"])
    await stack.call("PUT", "/v1/vault/k", {"value": STRONG + "-9xQ", "secret": True})
    writer = stack.key_of(role=KeyRole.WRITER)
    refused = await stack.call("DELETE", "/v1/vault/k?restore=true", key=writer)
    assert refused.status == 403
    done = await stack.call("DELETE", "/v1/vault/k?restore=true")
    assert (done.status, "put back" in done.body["hints"][0]) == (200, True)

    async def is_restored() -> bool:
        return await content_of(stack, told["id"]) == text

    await eventually(is_restored)
    assert (await stack.get(f"/v1/memories/{told['id']}"))["tags"] == [STRONG]
    await eventually(lambda: _reads(stack, later["id"], f"{STRONG} was rolled back"))

    async def is_turn_restored() -> bool:
        content = rows(stack.admin_url, "select content from turn where session = %s", session)
        return content == [(f"deploy {json.dumps(STRONG)}",)]

    await eventually(is_turn_restored)
    history = json.dumps(await stack.get(f"/v1/memories/{told['id']}/history"))
    assert STRONG in history
    assert "put back" in history
    assert "[REDACTED_VAULT" not in history
    found = await stack.post("/v1/recall", {"query": f"what is {STRONG}"})
    assert told["id"] in [one["id"] for one in found["memories"]]


async def _reads(stack: Stack, memory: str, text: str) -> bool:
    return await content_of(stack, memory) == text


async def test_a_secret_can_be_restored_after_its_entry_was_deleted(stack: Stack) -> None:
    told = await stack.post("/v1/remember", {"content": f"the tag is {STRONG}"})
    await stack.call("PUT", "/v1/vault/k", {"value": STRONG, "secret": True})
    await finish_backfill(stack)
    assert (await stack.call("DELETE", "/v1/vault/k")).status == 200
    assert STRONG not in await content_of(stack, told["id"])
    assert (await stack.call("DELETE", "/v1/vault/k?restore=true")).status == 200
    await eventually(lambda: _reads(stack, told["id"], f"the tag is {STRONG}"))
    unknown = await stack.call("DELETE", "/v1/vault/never?restore=true")
    assert unknown.status == 404


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (STRONG, True),
        ("Tr0ub4dor&3x", True),
        ("hunter2hunter2", True),
        ("p@ss!word#one", True),
        ("correct horse battery staple", True),
        ("8150273641", True),
        ("0b6e2b1c-77aa-4c1e-9d3f-2f1a6c3be8d0", True),
        ("xkqjzvbwpt", True),
        ("should", False),
        ("migration", False),
        ("Postgres", False),
        ("Kubernetes", False),
        ("getUserById", False),
        ("order_items_2024", False),
        ("db.internal.example", False),
        ("alice@example.com", False),
        ("2024-05-01", False),
        ("3.11.4", False),
        ("1732464000", False),
        ("1732464000123", False),
        ("https://accounts.example.com/o/oauth2/auth", False),
        ("shop-prod-417802", False),
        ("8150273", False),
        ("aaaaaaaaaaaa", False),
        ("We should run the migration", False),
        ("Summer2024!", False),
    ],
)
def test_only_values_that_are_no_ordinary_words_are_redacted(text: str, redacted: bool) -> None:
    assert is_redactable(text) is redacted
