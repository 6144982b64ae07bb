"""A change whose answer is lost after the commit is retried and takes effect once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.ingest.idempotency.changing_call import BY_NAME, Case, text
from tests.ingest.idempotency.changing_calls import (
    EDGE,
    HELD,
    RECIPES,
    create_key,
    edit,
    hook,
    link,
    put,
)
from tests.ingest.test_vault import everything
from tests.support.proxies import Step, StepProxy, behind_port, port_of
from tests.support.stack import VAULT_KEY, Reply, Stack, eventually, running_stack
from tests.support.tables import rows

ON_THE_BUS = {"replay_dead_letter"}
"""Changes of nothing in Postgres. `tests/bus/test_dead_letters.py` repeats one after a crash."""

OF_THE_ENGINE = {
    *("put_agent", "delete_agent", "create_group", "post_message", "approve_call", "stop_turns")
}
"""Calls of a service that does not run here. `tests/engine/test_groups.py` repeats one."""


@dataclass
class Lossy:
    """A stack whose Postgres falls silent once a statement is done."""

    stack: Stack
    proxy: StepProxy = field(repr=False)
    loses: str = ""

    async def send(self, name: str, case: Case, key: str = "", end: str = "") -> Reply:
        """The answer of an operation; `end` is added to the body that is sent."""
        body = case.body if isinstance(case.body, str) else json.dumps(case.body)
        kind = {} if isinstance(case.body, str) else {"Content-Type": "application/json"}
        headers = {"Idempotency-Key": key or name, **kind}
        data = ("" if case.body is None else body) + end
        method = BY_NAME[name].method
        return await self.stack.call(method, case.path, data=data, key=case.key, headers=headers)

    async def lose(self, name: str, case: Case, key: str = "") -> None:
        """The change is made, and its answer is lost."""
        self.loses = case.lost
        lost = await self.send(name, case, key)
        assert not self.loses, f"{name}: {case.lost} was not lost"
        assert lost.status == 503, (name, lost)


@pytest.fixture
async def lossy(
    request: pytest.FixtureRequest, database: DatabaseUrls, nats_url: str
) -> AsyncIterator[Lossy]:
    """Nothing is enriched or relayed, unless the parameter is the role `both`."""
    made: list[Lossy] = []

    def reached(step: Step) -> None:
        if made and step[0] == made[0].loses:
            made[0].loses = ""
            raise ConnectionResetError

    async with (
        StepProxy("127.0.0.1", port_of(database.service_url), reached) as proxy,
        running_stack(
            behind_port(database, proxy.port),
            nats_url,
            model_home(),
            vault_key=VAULT_KEY,
            ingest_role=getattr(request, "param", "api"),
        ) as stack,
    ):
        made.append(Lossy(stack, proxy))
        yield made[0]


@pytest.mark.parametrize("third", range(3))
async def test_a_change_whose_answer_is_lost_after_its_commit_is_made_once(
    lossy: Lossy, third: int
) -> None:
    reads = {
        route.name for table in lossy.stack.routes.values() for route in table if route.read_only
    }
    changing = {
        name
        for name, one in BY_NAME.items()
        if one.method != "GET" and f"{one.method} {one.path}" not in reads
    }
    assert RECIPES.keys() | ON_THE_BUS | OF_THE_ENGINE == changing, (
        "name how a change is made, and what its effect is"
    )
    for name in sorted(RECIPES)[third::3]:
        await _check_repetition(lossy, name)


async def _check_repetition(lossy: Lossy, name: str) -> None:
    """Compares a change whose answer is lost with one whose answer is not."""
    url, make = lossy.stack.admin_url, RECIPES[name]
    plain, case = await make(lossy.stack, 0), await make(lossy.stack, 1)
    answered = await lossy.send(name, plain, f"{name} 0")
    state = rows(url, plain.state, plain.subject)
    await lossy.lose(name, case)
    again = await lossy.send(name, case)
    assert rows(url, case.state, case.subject) == state, name
    assert again.status == answered.status, (name, again)
    assert _numbers(again.body, case.differs) == _numbers(answered.body, plain.differs), name
    if name != "delete_tenant":
        last = await lossy.send(name, case)
        assert (last.status, last.body) == (again.status, again.body), name
        assert last.headers["Idempotent-Replayed"] == "true", name
        refused = await lossy.send(name, case, end=" ")
        assert refused.body["code"] == "idempotency_mismatch", (name, refused)
        assert rows(url, case.state, case.subject) == state, name


def _numbers(value: Any, without: frozenset[str]) -> Any:
    """The numbers of an answer; of texts, ids and times only that they are there."""
    if isinstance(value, dict):
        return {k: _numbers(one, without) for k, one in value.items() if k not in without}
    if isinstance(value, list):
        return [_numbers(one, without) for one in value]
    return "a text" if isinstance(value, str) else value


async def test_a_repeated_change_does_not_undo_later_changes_of_others(lossy: Lossy) -> None:
    """A change that is sent again is the one that was made before theirs."""
    stack = lossy.stack

    async def around(name: str, case: Case, other: Callable[[], Awaitable[Reply]]) -> Reply:
        await lossy.lose(name, case)
        assert (await other()).status < 300
        again = await lossy.send(name, case)
        assert again.status < 300, (name, again)
        return again

    edited = await edit(stack, 0)
    theirs = text("theirs")
    again = await around(
        "edit_memory", edited, lambda: stack.call("PATCH", edited.path, {"content": theirs})
    )
    assert again.body["version"] == 2
    now = await stack.get(edited.path)
    assert (now["content"], now["version"]) == (theirs, 3)

    pin = await RECIPES["pin"](stack, 0)
    await around("pin", pin, lambda: stack.call("DELETE", pin.path))
    assert rows(stack.admin_url, "select pinned from memory where id = %s", pin.subject) == [
        (False,)
    ]
    linked = await link(stack, 0)

    async def unlinked() -> Reply:
        [[edge]] = rows(
            stack.admin_url,
            "select id from edge where src = %s and kind = 'depends_on'",
            linked.subject,
        )
        return await stack.call("DELETE", f"/v1/links/{edge}")

    await around("link", linked, unlinked)
    assert rows(stack.admin_url, EDGE, linked.subject) == [(False,)]
    kept = await put(stack, 0)
    more = {"value": "theirs", "version": 2}
    again = await around("vault_put", kept, lambda: stack.call("PUT", kept.path, more))
    assert again.body["version"] == 2
    assert (await stack.get(kept.path))["value"] == "theirs"
    task = await RECIPES["claim_task"](stack, 0)
    release = task.path.replace("/claim", "/release")
    await around("claim_task", task, lambda: stack.call("POST", release, {"agent": "ann"}))
    assert rows(stack.admin_url, task.state, task.subject)[0][1:] == ("todo", None)


@pytest.mark.parametrize("lossy", ["both"], indirect=True)
async def test_a_repeated_change_publishes_its_events_once(lossy: Lossy) -> None:
    stack = lossy.stack
    telling = ("restore", "edit_memory", "forget", "pin", "link", "unlink", "claim_task",
               "add_fact", "accept_review")  # fmt: skip
    cases = {name: await RECIPES[name](stack, 0) for name in telling}

    async def told_all() -> bool:
        return rows(stack.admin_url, "select from outbox") == []

    await eventually(told_all)
    place = (await stack.get("/v1/events/page"))["next"]
    for name, case in cases.items():
        await lossy.lose(name, case)
        again = await lossy.send(name, case)
        assert again.status < 300, (name, again)
    await eventually(told_all)
    told = await stack.get(f"/v1/events/page?limit=200&after={place}")
    about = Counter((one["event"], one["data"]["id"], one["data"]["version"])
                    for one in told["items"])  # fmt: skip
    assert not [what for what, times in about.items() if times > 1]
    wanted = {"restored", "edited", "forgotten", "linked", "unlinked"}
    assert wanted <= {name for name, _, _ in about}


async def test_a_lost_api_key_is_replaced_and_none_is_stored_in_plain_text(lossy: Lossy) -> None:
    stack = lossy.stack
    used = str((await stack.post("/v1/admin/keys", {"label": "used"}))["key"])
    [[held]] = rows(stack.admin_url, "select id from api_key where label = 'used'")
    told: list[str] = []
    for name, case in (
        ("create_key", await create_key(stack, 0)),
        ("rotate_key", Case(f"/v1/admin/keys/{held}/rotate", {"overlap_seconds": 60}, lost=HELD)),
    ):
        await lossy.lose(name, case)
        shown, again = [(await lossy.send(name, case)).body["key"] for _ in "ab"]
        assert shown == again
        told.append(shown)
    for key in (*told, used):
        assert (await stack.call("GET", "/v1/memories", key=key)).status == 200
    hooked = await hook(stack, 0)
    secrets = [(await lossy.send("set_webhook", hooked)).body["secret"] for _ in "ab"]
    assert secrets[0] == secrets[1]
    stored = everything(stack)
    assert not [text for text in (*told, used, *secrets) if text in stored]
    kept = "select body from idempotency where body is not null"
    assert not [text for text in (*told, *secrets) for (body,) in rows(stack.admin_url, kept)
                if text.encode() in bytes(body)]  # fmt: skip
