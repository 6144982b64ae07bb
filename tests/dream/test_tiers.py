"""Memories move between tiers by their use, unless somebody has put them into one."""

from __future__ import annotations

from asyncio import to_thread
from typing import Any

from reverie.domain.core.kinds import DAILY_DAYS, KIND_POLICIES, Kind, Tier, choose_tier
from tests.support.stack import Stack
from tests.support.tables import run

SCOPE = "project/shop"


def test_daily_use_warms_by_one_tier_and_its_end_gives_the_default_back() -> None:
    order = [Tier.COLD, Tier.WARM, Tier.HOT]
    for kind in Kind:
        default = KIND_POLICIES[kind].tier
        used = choose_tier(kind, SCOPE, DAILY_DAYS, 0)
        assert order.index(used) == min(order.index(default) + 1, 2)
        assert choose_tier(kind, SCOPE, DAILY_DAYS - 1, 0) is default
        assert choose_tier(kind, SCOPE, 0, 400) is default


def test_what_a_session_left_cools_once_it_is_idle_unless_it_is_used_daily() -> None:
    assert choose_tier(Kind.DECISION, "session/a", 1, 0.5) is Tier.WARM
    assert choose_tier(Kind.DECISION, "session/a", 1, 1.5) is Tier.COLD
    assert choose_tier(Kind.DECISION, "session/a", DAILY_DAYS, 1.5) is Tier.HOT


async def _remember(stack: Stack, content: str, **fields: Any) -> str:
    body = {"content": content, "scope": SCOPE, "kind": "bug", **fields}
    return str((await stack.post("/v1/remember", body))["id"])


async def _use_daily(stack: Stack, memory: str, days: int) -> None:
    """Uses a memory on each of the last days, by a session of its stack."""
    await to_thread(
        run,
        stack.admin_url,
        "insert into memory_use_session (tenant, used_by, memory, at)"
        " select %s, 'session ' || gen_random_uuid(), %s, now() - make_interval(days => d)"
        " from generate_series(0, %s - 1) d",
        stack.number(),
        memory,
        days,
    )


async def _tier(stack: Stack, memory: str) -> str:
    return str((await stack.get(f"/v1/memories/{memory}"))["tier"])


async def test_what_is_used_daily_starts_every_session_until_it_no_longer_is(stack: Stack) -> None:
    daily = await _remember(stack, "The staging database drops connections at noon")
    seldom = await _remember(stack, "The importer fails on empty files")
    fixed = await _remember(stack, "The mailer doubles umlauts", tier="cold")
    for memory, days in ((daily, 5), (seldom, 2), (fixed, 6)):
        await _use_daily(stack, memory, days)
    context = "/v1/context?project=shop"
    assert daily not in (await stack.get(context))["memories"]

    assert (await stack.post("/v1/maintenance/run", {}))["moved"] == 1
    assert [await _tier(stack, one) for one in (daily, seldom, fixed)] == ["hot", "warm", "cold"]
    newest, first = (await stack.get(f"/v1/memories/{daily}/history"))["items"]
    assert (first["tier"], newest["tier"], newest["actor"]) == ("warm", "hot", "dream")
    assert newest["reason"] == "hot: it was used on 5 of the last 7 days"
    shown = await stack.get(context)
    assert daily in shown["memories"]
    assert seldom not in shown["memories"]
    assert (await stack.post("/v1/maintenance/run", {}))["moved"] == 0

    forgotten = "update memory_use_session set at = at - interval '9 days' where tenant = %s"
    await to_thread(run, stack.admin_url, forgotten, stack.number())
    assert (await stack.post("/v1/maintenance/run", {}))["moved"] == 1
    [latest, *_] = (await stack.get(f"/v1/memories/{daily}/history"))["items"]
    assert (latest["tier"], latest["reason"]) == ("warm", "warm again: it is no longer used daily")


async def test_a_tier_set_by_hand_stays_and_a_cold_memory_waits_to_be_asked_for(
    stack: Stack,
) -> None:
    decision = await _remember(stack, "Invoices are PDF/A", kind="decision")
    context = "/v1/context?project=shop"
    assert decision in (await stack.get(context))["memories"]
    changed = await stack.call("PATCH", f"/v1/memories/{decision}", {"tier": "cold"})
    assert (changed.status, changed.body["changed"]) == (200, True)
    assert decision not in (await stack.get(context))["memories"]
    await _use_daily(stack, decision, 7)
    assert (await stack.post("/v1/maintenance/run", {}))["moved"] == 0
    # Another kind has another default, and what was set by hand stays as well.
    await stack.call("PATCH", f"/v1/memories/{decision}", {"kind": "convention"})
    assert await _tier(stack, decision) == "cold"
    found = await stack.post("/v1/recall", {"query": "invoices", "scopes": [SCOPE]})
    assert [one["id"] for one in found["memories"]] == [decision]
    refused = await stack.call("PATCH", f"/v1/memories/{decision}", {"tier": "tepid"})
    assert (refused.status, refused.body["field"]) == (422, "tier")


async def test_the_memories_of_a_session_cool_after_it(stack: Stack) -> None:
    note = await _remember(stack, "Try the other port first", kind="context", scope="session/s1")
    assert (await stack.post("/v1/maintenance/run", {}))["moved"] == 0
    age = "update memory set created = now() - interval '2 days', confirmed = null where id = %s"
    await to_thread(run, stack.admin_url, age, note)
    assert (await stack.post("/v1/maintenance/run", {}))["moved"] == 1
    [newest, _] = (await stack.get(f"/v1/memories/{note}/history"))["items"]
    assert (newest["tier"], newest["reason"]) == ("cold", "cold: its session is over")
    assert (await stack.post("/v1/maintenance/run", {}))["moved"] == 0
