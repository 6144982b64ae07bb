"""A worker dies at each step of a turn: nothing is lost, doubled or made twice.

Where a step is made several times, at the last; at the first too with `REVERIE_TEST_STEPS=all`, as
`make chaos` sets it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from reverie.bus.interface import Message, MessageBus
from reverie.bus.nats_bus import connect
from reverie.bus.outbox_relay import EventPublisher
from reverie.client.async_client import AsyncReverie
from reverie.contracts.events import turn_subject
from reverie.domain.core.errors import Unavailable
from reverie.domain.core.ids import new_id
from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR, Redactor
from reverie.inference.chat_models import open_chat_models, parse_chat_endpoints
from reverie.runtime.observability.metrics import create_registry
from reverie.runtime.settings.field_types import require_secret, secret_text
from reverie.store.db.database import open_database
from reverie.store.db.encryption import create_cipher
from reverie.store.engine.conversations import ConversationTables
from reverie.store.engine.turns import ChainLimits, NewTurns, TurnTable
from reverie.store.platform.outbox import OutboxTable
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse
from reverie_services.engine.app import build_engine_settings
from reverie_services.engine.dependencies import TurnDependencies
from reverie_services.engine.leases import TurnLeases
from reverie_services.engine.metrics import EngineMetrics
from reverie_services.engine.turns.capabilities import UNKNOWN_EFFECT
from reverie_services.engine.worker import handle_ticket
from reverie_services.engine.workspace import Workspace
from tests.engine.conftest import Engine

STEPS = ("claim", "save", "begin_effect", "finish_effect", "hand_on", "reserve", "count", "end")
LASTING = ("begin_effect", "hand_on", "end")
ALL = os.environ.get("REVERIE_TEST_STEPS") == "all"
LEASE = 2.0


class _Dead(asyncio.CancelledError):
    """The process is gone: nothing runs after it."""


@dataclass
class _Death:
    """Kills a worker at its `at`th step: before the step is made, or right after it."""

    at: float
    steps: int = 0
    log: list[str] = field(default_factory=list)

    def wrap(self, name: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def make_step(*args: Any, **kwargs: Any) -> Any:
            self.steps += 1
            self.log.append(name)
            if self.steps > self.at:
                raise _Dead
            result = await call(*args, **kwargs)
            if self.steps == self.at:
                raise _Dead
            return result

        return make_step


class _MortalTable:
    """The store as a worker sees it that dies at a step. A dead one gives nothing back."""

    def __init__(self, turns: TurnTable, death: _Death) -> None:
        self._turns, self._death = turns, death

    def __getattr__(self, name: str) -> Any:
        if name == "release" and self._death.steps >= self._death.at:
            return _do_nothing
        found = getattr(self._turns, name)
        return self._death.wrap(name, found) if name in STEPS else found


async def _do_nothing(*_: Any) -> None:
    pass


@asynccontextmanager
async def _open_deps(engine: Engine) -> AsyncIterator[TurnDependencies]:
    """What a worker of another process would have."""
    settings = engine.service.settings
    endpoints = parse_chat_endpoints(secret_text(settings.engine_models), None)
    async with (
        open_database(require_secret(settings.database_url, "database_url"), 8) as database,
        connect(require_secret(settings.nats_url, "nats_url"), "engine") as bus,
        open_chat_models(endpoints, 20.0) as models,
    ):

        async def load_redactor(_: int) -> Redactor:
            return CREDENTIAL_REDACTOR

        turns = TurnTable(database, create_cipher(secret_text(settings.vault_key)), LEASE)
        yield TurnDependencies(
            settings=replace(build_engine_settings(settings), lease_seconds=LEASE),
            conversations=ConversationTables(database),
            turns=turns,
            leases=TurnLeases(turns, LEASE),
            publisher=EventPublisher(bus, OutboxTable(database)),
            bus=bus,
            models=models,
            create_model=models.create,
            open_memory=partial(AsyncReverie, engine.stack.url),
            load_redactor=load_redactor,
            metrics=EngineMetrics(create_registry()),
        )


def _script(asked: ChatRequest) -> ChatAnswer:
    """Looks, counts in a file, remembers, hands on, and answers."""
    if "name is rams" in asked.system:
        return ChatAnswer("Rams is done.")
    name = re.findall(r"count in ([a-z0-9.-]+)", " ".join(asked.texts))[0]
    calls = [
        ToolUse("list_files", {"pattern": "*.none"}),
        ToolUse("write_file", {"path": name, "content": "x"}),
        ToolUse("remember", {"content": f"Counting goes to {name}.", "kind": "lesson"}),
        ToolUse("route_forward", {"agent": "rams", "task": "Yours."}),
    ]
    done = len(asked.results)
    return ChatAnswer("All is done.") if done == len(calls) else ChatAnswer(calls=(calls[done],))


async def _run_mortal(
    engine: Engine, deps: TurnDependencies, at: float, log: list[str] | None = None
) -> tuple[str, str, dict[str, Any], _Death]:
    """Runs a turn by a worker that dies at a step. The shared engine learns of the turn later."""
    name = f"count-{at}.txt"
    group = await engine.group("doer", "rams", project="killed")
    tenant, turn, message = engine.stack.number(), new_id(), new_id()
    names = (tenant, engine.stack.tenant)
    await deps.turns.post(
        names,
        UUID(group),
        "user",
        f"Please count in {name} once.",
        [],
        NewTurns(["doer"], [turn]),
        engine.stack.key,
        ChainLimits(),
        {},
        message,
    )
    death = _Death(at, log=[] if log is None else log)
    mortal: Any = _MortalTable(deps.turns, death)
    body = json.dumps({"tenant": tenant, "turn": str(turn)}).encode()
    ticket = Message(turn_subject(engine.stack.tenant, turn), body, {}, 1)
    with suppress(asyncio.CancelledError, Unavailable):
        await handle_ticket(replace(deps, turns=mortal), ticket)
    return group, name, {"id": str(message)}, death


@dataclass
class _NotedBus:
    """The bus; approvals that go out are entered in a log."""

    bus: MessageBus
    log: list[str]

    async def send(self, subject: str, data: bytes, headers: dict[str, str]) -> None:
        kind = json.loads(data).get("type")
        self.log += ["approval"] if kind == "approval" else []
        await self.bus.send(subject, data, headers)


async def test_a_call_is_announced_once_it_can_be_decided(engine: Engine) -> None:
    await engine.agent("doer", ask=["write_file"])
    engine.play(_script)
    async with _open_deps(engine) as deps:
        log: list[str] = []
        bus: Any = _NotedBus(deps.bus, log)
        group, _, posted, _ = await _run_mortal(engine, replace(deps, bus=bus), 1000, log)
    assert log.index("end") < log.index("approval")
    reply = await engine.call("POST", f"/v1/groups/{group}/stop", {})
    assert reply.status == 200
    await engine.ended(group, posted)


@asynccontextmanager
async def _open_no_memory(_: str) -> AsyncIterator[AsyncReverie]:
    raise Unavailable("the gateway", "connection refused")
    yield


async def test_an_outage_of_memory_is_no_attempt_at_the_turn(engine: Engine) -> None:
    await engine.agent("doer", ask=[])
    engine.play(_script)
    async with _open_deps(engine) as deps:
        cut_off = replace(deps, open_memory=_open_no_memory)
        group, _, posted, _ = await _run_mortal(engine, cut_off, 2000)
    turns = await engine.ended(group, posted)
    assert (turns["doer"]["status"], turns["doer"]["attempts"]) == ("done", 1)


async def test_a_worker_may_die_at_any_step(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Counter[str]()
    write = Workspace.write

    async def write_counted(self: Workspace, path: str, content: str) -> str:
        written[path] += 1
        return await write(self, path, content)

    monkeypatch.setattr(Workspace, "write", write_counted)
    await engine.agent("doer", ask=[])
    engine.play(_script)
    async with _open_deps(engine) as deps:
        _, _, _, whole = await _run_mortal(engine, deps, 1000)
        assert set(whole.log) == set(STEPS)
        # Before each step, and right after those that are no longer undone.
        last = {name: number for number, name in enumerate(whole.log, 1)}
        first = {name: whole.log.index(name) + 1 for name in last} if ALL else {}
        steps = sorted({(number, name) for name, number in (*first.items(), *last.items())})
        moments = [number - 0.5 for number, _ in steps]
        moments += [float(number) for number, name in steps if name in LASTING]
        runs = await asyncio.gather(*(_run_mortal(engine, deps, at) for at in moments))
        for group, name, posted, death in runs:
            turns = await engine.ended(group, posted)
            where = f"dead at step {death.at} of {whole.log}"
            assert {turn["status"] for turn in turns.values()} == {"done"}, where
            assert turns.keys() == {"doer", "rams"}, where
            assert sorted(await engine.answers(group)) == ["All is done.", "Rams is done."], where
            told = any(UNKNOWN_EFFECT in r.last and name in r.body_text for r in engine.requests)
            assert written[name] == 1 or (told and written[name] == 0), where
            seen = await engine.watch(group, 0, until="result")
            seen += await engine.watch(group, seen[-1]["at"], until="result")
            told_of = {event["agent"] for event in seen if event["type"] == "result"}
            assert told_of == {"doer", "rams"}, where
    await engine.stack.settled()
    lessons = await engine.stack.walked("/v1/memories", 50)
    counted = [item["content"] for item in lessons if "Counting goes to" in item["content"]]
    assert len(counted) == len(set(counted)) == len(moments) + 1
