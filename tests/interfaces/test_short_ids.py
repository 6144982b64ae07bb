"""Short ids are accepted at every interface, and ambiguous ones are explained."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID

from reverie.domain.core.ids import new_id
from tests.cli.test_memory_commands import Shell
from tests.cli.test_memory_commands import shell as shell
from tests.support.stack import Stack, eventually
from tests.support.tables import rows, value

REVIEW = (
    "insert into review (tenant, id, memory, version, verdict, reason, author, seen)"
    " values (%s, %s, %s, 1, 'gone', 'it is gone', 'stub', now()) returning id"
)


async def _made(stack: Stack) -> dict[str, str]:
    """One of every type: its full id."""
    note = (await stack.post("/v1/remember", {"content": "Money is kept in cents"}))["id"]
    other = (await stack.post("/v1/remember", {"content": "Prices are rounded down"}))["id"]
    link = {"from": note, "to": other, "type": "relates_to"}
    start = {"agent": "ann", "project": "shop", "external_id": "chat-7"}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    said = [{"role": "user", "content": "We decided to keep money in integer cents."}]
    await stack.post("/v1/turns", {"session": session, "turns": said})
    await stack.post(f"/v1/sessions/{session}/end", {})
    await stack.post("/v1/recall", {"query": "money"})

    async def first(path: str) -> Any:
        return next(iter((await stack.get(path))["items"]), None)

    review = new_id()
    await asyncio.to_thread(rows, stack.admin_url, REVIEW, stack.number(), review, other)
    return {
        "memory": note,
        "link": (await stack.post("/v1/links", link))["id"],
        "session": session,
        "dream": (await eventually(lambda: first("/v1/dreams")))["id"],
        "trace": (await eventually(lambda: first("/v1/traces")))["id"],
        "review": str(review),
        "key": (await stack.post("/v1/admin/keys", {"label": "ci"}))["id"],
    }


def _parts(full: str) -> list[str]:
    digits = UUID(full).hex
    return [digits[-8:], digits[-12:], full[-13:], full[:18], digits[:31], digits[-20:].upper()]


async def test_an_id_is_found_by_its_beginning_or_end(stack: Stack, shell: Shell) -> None:
    made = await _made(stack)
    paths = {
        "memory": "/v1/memories/{}",
        "session": "/v1/sessions/{}/turns",
        "dream": "/v1/dreams/{}",
        "trace": "/v1/traces/{}",
        "key": "/v1/admin/keys/{}",
    }
    for what, path in paths.items():
        whole = await stack.get(path.format(made[what]))
        for part in _parts(made[what]):
            found = await stack.get(path.format(part))
            assert found.get("id") == whole.get("id"), (what, part)
        for nothing in ("f" * 8, "f" * 31):
            missing = await stack.call("GET", path.format(nothing))
            assert (missing.status, missing.body["code"]) == (404, "not_found"), what
        for wrong in ("abc", "f" * 33, "zzzzzzzz"):
            refused = await stack.call("GET", path.format(wrong))
            assert refused.status in {404, 422}, (what, wrong)
    narrow = stack.key_of(reads=("project/none",), writes=("project/none",), agent="bob")
    for what in ("memory", "session", "dream", "trace"):
        hidden = await stack.call("GET", paths[what].format(made[what][-8:]), key=narrow)
        assert hidden.status == 404, what
    named = await stack.get("/v1/sessions?session=chat-7")
    assert [one["id"] for one in named["items"]] == [made["session"]]
    assert "integer cents" in await shell.said("sessions", "chat-7")
    assert (await shell.json("dream", "history", made["dream"][-8:]))["id"] == made["dream"]
    assert (await shell.json("trace", made["trace"][-8:]))["id"] == made["trace"]
    accepted = await stack.post(f"/v1/reviews/{made['review'][-8:]}/reject", {})
    assert accepted["id"] == made["review"]
    unlinked = await shell.json("unlink", made["link"][-8:])
    assert unlinked["id"] == made["link"]


async def _beginnings_stay() -> bool:
    """Whether ids that are made within some seconds begin with the same eight letters.

    Those are the upper 32 of the 48 bits that hold the milliseconds of a UUIDv7.
    """
    return time.time() * 1000 % 2**16 < 2**16 - 10_000


async def test_an_ambiguous_short_id_is_reported_with_its_candidates(
    stack: Stack, shell: Shell
) -> None:
    await eventually(_beginnings_stay)
    for content in ("Money is kept in cents", "Prices are rounded down"):
        await stack.post("/v1/remember", {"content": content})
    for agent in ("ann", "bob"):
        await stack.post("/v1/sessions/start", {"agent": agent, "project": "shop"})
    for table in ("memory", "session"):
        same = value(
            stack.admin_url,
            f"select substr(min(id::text), 1, 8) from {table} where tenant = %s",
            stack.number(),
        )
        path = "/v1/memories/{}" if table == "memory" else "/v1/sessions/{}/turns"
        several = await stack.call("GET", path.format(same))
        assert (several.status, several.body["code"]) == (422, "invalid")
        words = ("rounded down", "in cents") if table == "memory" else ("ann shop", "bob shop")
        for word in words:
            assert word in several.body["detail"], several.body
    code, said = await shell.run("show", same)
    assert (code, "give more of it" in said) == (2, True)
