"""Vault secrets are redacted only if strong, only in scopes of the writer, and with an undo."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

from reverie.domain.access.principals import KeyRole
from reverie.domain.core.errors import Unavailable
from reverie.domain.core.ids import new_id
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.redaction.vault_secrets import is_redactable
from reverie.store.vault.redaction_backfill import BackfillRun, RedactedRow, RedactionBackfillStore
from reverie_services.ingest.dependencies import RedactionBackfillDependencies
from reverie_services.ingest.redaction_backfill import LEASE_SECONDS, run_redaction_backfill
from tests.support.stack import Stack, eventually
from tests.support.store_setup import Store, new, write
from tests.support.tables import rows, run, value

STRONG = "kV7" + "qz-Xw2m-Rt9p-Lb4d"
SECRETS = (
    *(STRONG, "Tr0ub4dor&3x", "hunter2hunter2", "p@ss!word#one", "correct horse battery staple"),
    *("8150273641", "0b6e2b1c-77aa-4c1e-9d3f-2f1a6c3be8d0", "xkqjzvbwpt"),
)
ORDINARY = (
    *("should", "migration", "Postgres", "Kubernetes", "getUserById", "order_items_2024"),
    *("db.internal.example", "alice@example.com", "2024-05-01", "3.11.4", "1732464000"),
    *("1732464000123", "https://accounts.example.com/o/oauth2/auth", "shop-prod-417802"),
    *("8150273", "aaaaaaaaaaaa", "We should run the migration", "Summer2024!"),
)


async def finish_backfill(stack: Stack) -> None:
    """Waits until a pass over the stored texts is over."""

    async def is_searched() -> bool:
        return bool((await stack.get("/v1/vault/redaction-status"))["passes"])

    await eventually(is_searched)


async def content_of(stack: Stack, memory: str) -> str:
    return str((await stack.get(f"/v1/memories/{memory}"))["content"])


async def wait_for_content(stack: Stack, memory: str, content: str) -> None:
    async def has_content() -> bool:
        return await content_of(stack, memory) == content

    await eventually(has_content)


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
    # Counts tell of all scopes.
    seen = await stack.get("/v1/vault/redaction-status", key=narrow)
    assert (seen["redacted"], seen["examined"]) == (None, None)
    assert (await stack.get("/v1/vault/redaction-status"))["redacted"] == 1
    for scope, count in (("project/a", 1), ("project/b", 0), ("global", 0)):
        body = {"content": f"later {STRONG} too", "scope": scope}
        assert (await stack.post("/v1/remember", body))["redactions"] == count


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
    assert (await stack.call("DELETE", "/v1/vault/never?restore=true")).status == 404
    await wait_for_content(stack, told["id"], text)
    assert (await stack.get(f"/v1/memories/{told['id']}"))["tags"] == [STRONG]
    await wait_for_content(stack, later["id"], f"{STRONG} was rolled back")

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


def test_only_values_that_are_no_ordinary_words_are_redacted() -> None:
    assert [text for text in SECRETS if not is_redactable(text)] == []
    assert [text for text in ORDINARY if is_redactable(text)] == []


IMAGE = """
insert into reverie.engine_image (tenant, id, group_id, scope, media_type, data)
values (%s, %s, gen_random_uuid(), 'global', 'image/png', 'x')
"""
MESSAGE = """
insert into reverie.engine_message (tenant, id, group_id, scope, author, content, images)
values (%s, %s, gen_random_uuid(), 'global', 'ann', %s, array[%s]::uuid[])
"""
SEEN = """
select md5(jsonb_build_object('content', content)::text) from reverie.engine_message where id = %s
"""
DESCRIBE = """
update reverie.engine_message set content = replace(content, 'image/png', 'image/png, a bird')
where id = %s
"""


async def test_a_service_that_stops_leaves_its_run_to_the_next(store: Store) -> None:
    await write(store, new("it was told before"))
    requested = (
        "insert into vault_epoch (tenant, requested, due) values (%s, now(), now())"
        " on conflict (tenant) do update set requested = now(), due = now(), finished = null"
    )
    run(store.admin_url, requested, store.me.tenant)
    begun = asyncio.Event()

    async def load_redactor(_: int) -> Redactor:
        begun.set()
        await asyncio.Event().wait()
        raise Unavailable("the vault", "nobody waits for it")

    backfill = RedactionBackfillStore(store.db)
    work = run_redaction_backfill(RedactionBackfillDependencies(backfill, load_redactor, 0.0))
    stopped = asyncio.create_task(work)
    async with asyncio.timeout(60):
        await begun.wait()
    assert await backfill.claim(LEASE_SECONDS) is None
    stopped.cancel()
    await asyncio.wait({stopped})
    assert stopped.cancelled()
    again = await backfill.claim(LEASE_SECONDS)
    assert again is not None
    assert again.tenant == store.me.tenant


async def test_images_stay_where_their_message_was_described_since_it_was_read(
    shared_store: Store,
) -> None:
    """The message is read again then, and redacted with its description."""
    url, tenant = shared_store.admin_url, shared_store.me.tenant
    text = "The word is heron.\n\n[image: image/png]"
    now = {"content": text.replace("heron", "[REDACTED]").replace("image/png", "image/png, ?")}
    backfill = RedactionBackfillStore(shared_store.db)
    run_of = BackfillRun(tenant, "one", datetime.now(UTC), "engine_message", None)
    for is_described in (False, True):
        message, image = new_id(), new_id()
        run(url, IMAGE, tenant, image)
        run(url, MESSAGE, tenant, message, text, image)
        row = RedactedRow({"id": str(message)}, value(url, SEEN, message), now, "", "")
        if is_described:
            run(url, DESCRIBE, message)
        assert await backfill.put(run_of, [row]) is not is_described
        left = "select count(*) from reverie.engine_image where id = %s"
        assert value(url, left, image) == is_described
