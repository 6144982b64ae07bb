"""Vault secrets are redacted only if strong, only in scopes of the writer, and with an undo."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator

import pytest

from reverie.domain.access.principals import KeyRole
from reverie.domain.redaction.vault_secrets import is_redactable
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import rows

MASTER_KEY = base64.b64encode(b"o" * 32).decode()
STRONG = "kV7" + "qz-Xw2m-Rt9p-Lb4d"


@pytest.fixture
async def vault(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    async with running_stack(database, nats_url, model_home(), vault_key=MASTER_KEY) as made:
        yield made


async def finish_backfill(vault: Stack) -> None:
    """Waits until a pass over the stored texts is over."""

    async def is_searched() -> bool:
        return bool((await vault.get("/v1/vault/redaction-status"))["passes"])

    await eventually(is_searched)


async def content_of(vault: Stack, memory: str) -> str:
    return str((await vault.get(f"/v1/memories/{memory}"))["content"])


async def test_a_secret_changes_no_text_in_a_scope_that_its_writer_may_not_write(
    vault: Stack,
) -> None:
    text = f"We run the migration with {STRONG} on Postgres"
    places = {
        scope: (await vault.post("/v1/remember", {"content": text, "scope": scope}))["id"]
        for scope in ("project/a", "project/b", "global")
    }
    narrow = vault.key_of(reads=["project/a"], writes=["project/a"])
    sent = {"value": {"a": STRONG, "b": "migration", "c": "Postgres"}, "secret": True}
    put = await vault.call("PUT", "/v1/vault/k?scope=project/a", sent, key=narrow)
    assert put.status == 200
    await finish_backfill(vault)
    assert "[REDACTED_VAULT" in await content_of(vault, places["project/a"])
    assert "migration" in await content_of(vault, places["project/a"])
    assert await content_of(vault, places["project/b"]) == text
    assert await content_of(vault, places["global"]) == text
    for scope, count in (("project/a", 1), ("project/b", 0), ("global", 0)):
        body = {"content": f"later {STRONG} too", "scope": scope}
        assert (await vault.post("/v1/remember", body))["redactions"] == count


async def test_counts_of_redactions_are_given_only_to_who_reads_every_scope(vault: Stack) -> None:
    await vault.post("/v1/remember", {"content": f"say {STRONG}", "scope": "project/b"})
    narrow = vault.key_of(reads=["project/a"], writes=["*"])
    sent = {"value": STRONG, "secret": True}
    assert (await vault.call("PUT", "/v1/vault/k?scope=project/a", sent, key=narrow)).status == 200
    await finish_backfill(vault)
    seen = await vault.get("/v1/vault/redaction-status", key=narrow)
    assert (seen["redacted"], seen["examined"]) == (None, None)
    assert (await vault.get("/v1/vault/redaction-status"))["redacted"] >= 1


async def test_an_administrator_puts_back_what_a_deleted_entry_had_redacted(vault: Stack) -> None:
    text = f"The build is called {STRONG} since May"
    told = await vault.post("/v1/remember", {"content": text, "tags": [STRONG], "key": "build"})
    session = (await vault.post("/v1/sessions/start", {"agent": "claude"}))["session"]
    turns = [{"role": "user", "content": f"deploy {json.dumps(STRONG)}"}]
    await vault.post("/v1/turns", {"session": session, "turns": turns})
    first = {"value": STRONG, "secret": True}
    await vault.call("PUT", "/v1/vault/k", first)
    await finish_backfill(vault)
    later = await vault.post("/v1/remember", {"content": f"{STRONG} was rolled back"})
    assert STRONG not in await content_of(vault, told["id"])
    await vault.call("PUT", "/v1/vault/k", {"value": STRONG + "-9xQ", "secret": True})
    writer = vault.key_of(role=KeyRole.WRITER)
    refused = await vault.call("DELETE", "/v1/vault/k?restore=true", key=writer)
    assert refused.status == 403
    done = await vault.call("DELETE", "/v1/vault/k?restore=true")
    assert (done.status, "put back" in done.body["hints"][0]) == (200, True)

    async def is_restored() -> bool:
        return await content_of(vault, told["id"]) == text

    await eventually(is_restored)
    assert (await vault.get(f"/v1/memories/{told['id']}"))["tags"] == [STRONG]
    await eventually(lambda: _reads(vault, later["id"], f"{STRONG} was rolled back"))
    content = rows(vault.admin_url, "select content from turn where session = %s", session)
    assert content == [(f"deploy {json.dumps(STRONG)}",)]
    history = json.dumps(await vault.get(f"/v1/memories/{told['id']}/history"))
    assert STRONG in history
    assert "put back" in history
    assert "[REDACTED_VAULT" not in history
    found = await vault.post("/v1/recall", {"query": f"what is {STRONG}"})
    assert told["id"] in [one["id"] for one in found["memories"]]


async def _reads(vault: Stack, memory: str, text: str) -> bool:
    return await content_of(vault, memory) == text


async def test_a_secret_can_be_restored_after_its_entry_was_deleted(vault: Stack) -> None:
    told = await vault.post("/v1/remember", {"content": f"the tag is {STRONG}"})
    await vault.call("PUT", "/v1/vault/k", {"value": STRONG, "secret": True})
    await finish_backfill(vault)
    assert (await vault.call("DELETE", "/v1/vault/k")).status == 200
    assert STRONG not in await content_of(vault, told["id"])
    assert (await vault.call("DELETE", "/v1/vault/k?restore=true")).status == 200
    await eventually(lambda: _reads(vault, told["id"], f"the tag is {STRONG}"))
    unknown = await vault.call("DELETE", "/v1/vault/never?restore=true")
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
