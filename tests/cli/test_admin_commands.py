"""`reverie admin` on a running system."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from tests.support.commands import command
from tests.support.stack import Stack


async def _run(stack: Stack, *words: str) -> tuple[int, str, str]:
    """The exit code of the command, and what it said."""
    assert stack.settings.nats_url
    nats_url = stack.settings.nats_url.get_secret_value()
    env = {"REVERIE_DATABASE_URL": stack.admin_url, "REVERIE_NATS_URL": nats_url, "COLUMNS": "200"}
    return await command(env, *words)


async def _admin(stack: Stack, *words: str) -> Any:
    """What the command printed as JSON, or its exit code."""
    code, shown, _ = await _run(stack, "admin", *words, "--json")
    return code or json.loads(shown)


async def test_an_operator_lists_and_deletes_scopes_projects_and_tenants(stack: Stack) -> None:
    acme = f"acme-{uuid4().hex[:8]}"
    [made] = await _admin(stack, "tenants", "add", acme)
    assert await _admin(stack, "tenants", "add", "No Name") == 2
    key = stack.key_of(tenant=acme)
    for scope in ("project/shop", "project/shop/topic/pay", "global", "agent/ann"):
        await stack.post("/v1/remember", {"content": f"of {scope}", "scope": scope}, key=key)
    of = ("--tenant", acme)
    [project] = await _admin(stack, "projects", "list", *of)
    assert (project["project"], project["memories"]) == ("shop", 2)
    budgets = ("projects", "budgets", "shop", *of)
    [changed] = await _admin(stack, *budgets, "-c", "warm=900", "-c", "entries=60")
    assert (changed["warm"], changed["entries"], changed["hot"]) == (900, 60, 800)
    [kept] = await _admin(stack, *budgets)
    assert kept == changed
    [back] = await _admin(stack, *budgets, "--reset")
    assert (back["warm"], back["entries"]) == (800, 50)
    assert await _admin(stack, *budgets, "-c", "cold=1") == 2
    listed = await _admin(stack, "scopes", "list", *of)
    assert [one["scope"] for one in listed] == sorted(one["scope"] for one in listed)
    gone = await _admin(stack, "projects", "delete", "shop", "--yes", *of)
    assert gone["rows"]["memory"] == 2
    assert gone["messages"]["MEMORY"] >= 2
    await _admin(stack, "scopes", "delete", "agent/ann", "--yes", *of)
    [left] = await _admin(stack, "scopes", "list", *of)
    assert left["scope"] == "global"
    assert await _admin(stack, "tenants", "delete", acme) == 1
    refused = await _run(stack, "admin", "tenants", "delete", "nope")
    assert (refused[0], "nope" in refused[2], "for ever" in refused[2]) == (4, True, False)
    ended = await _admin(stack, "tenants", "delete", acme, "--yes")
    assert ended["rows"]["tenant"] == 1
    names = await _admin(stack, "tenants", "list")
    assert made not in names
    assert await _admin(stack, "scopes", "list", *of) == 4
    assert (await stack.call("GET", "/v1/context", key=key)).status == 401


async def test_markup_in_a_name_is_printed_literally(stack: Stack) -> None:
    label = "[/x] of [ci]"
    await stack.post("/v1/admin/keys", {"label": label, "role": "reader"})
    code, shown, said = await _run(stack, "key", "list")
    assert code == 0, said
    assert label in shown
