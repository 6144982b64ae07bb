"""An engine's worker killed at any statement of a turn is followed by one that finishes it.

It is killed when Postgres has answered a statement and before it hears of it: at each statement,
and at each commit. Between them lies all that a worker does, so these are the claim, both sides of
a tool's effect, every step that is stored, and the time between the end and its events. By default
a few steps are walked; all of them with `REVERIE_TEST_STEPS=all`, as `make chaos` sets it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from chaos.crashes.engine_world import EngineWorld, Watcher, open_engine_world
from chaos.crashes.service_processes import Served, World
from chaos.crashes.statement_walk import ALL, WALK_SECONDS
from reverie.client import AsyncReverie
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ChatServer, ToolUse, chat_server
from reverie_services.engine.turns.capabilities import UNKNOWN_EFFECT
from tests.support.proxies import Step, StepProxy, at_port, port_of
from tests.support.stack import eventually
from tests.support.tables import rows

ANSWER = "Counted, once and for all."
FEW = (
    "engine_claim",
    "engine_effect_begin, committed",
    "engine_effect_done",
    "engine_effect_done, committed",
    "engine_end",
)
RENEWED = "engine_renew"
"""Comes with time, and not with a step."""
SAID = """
select t.role, t.content from reverie.turn t
join reverie.engine_group g on g.tenant = t.tenant and g.session = t.session
where g.id = %s::uuid order by t.id
"""


def _answer(asked: ChatRequest) -> ChatAnswer:
    """Writes a file, and answers."""
    if asked.results:
        return ChatAnswer(ANSWER)
    name = re.findall(r"Count in ([a-z0-9]+)", " ".join(asked.texts))[-1]
    return ChatAnswer("I count. ", (ToolUse("write_file", {"path": name, "content": "x"}),))


@dataclass
class _Walk:
    """Workers whose statements pass a proxy; the running one dies where it is to."""

    engines: EngineWorld
    models: ChatServer
    proxy: StepProxy
    victim: Served | None = None
    at: Step | None = None

    def reached(self, step: Step) -> None:
        """Kills the victim at its step."""
        if step == self.at and self.victim:
            self.victim.process.kill()

    async def start(self) -> Served:
        """Another worker."""
        world = self.engines.world
        behind = at_port(world.database.service_url, self.proxy.port)
        return await self.engines.start(self.models.url, world.folder, database_url=behind)

    async def run(self, name: str, step: Step | None) -> None:
        """A turn whose worker dies at a step, if one is given, and that another finishes."""
        assert self.victim
        self.models.requests.clear()
        self.proxy.reset()
        self.at = step
        async with AsyncReverie(self.victim.url, self.engines.world.key) as reverie:
            group = await reverie.create_group(["doer"], project="killed")
            posted = await reverie.post_message(group.id, f"Count in {name}.")
            watcher = Watcher(posted.after)
            watching = asyncio.create_task(watcher.watch(reverie, group.id))
            if step is None:
                await watching
            else:
                await self._fall(watching)
        written = self._find(name)
        if step is not None:
            self.victim = await self.start()
            async with AsyncReverie(self.victim.url, self.engines.world.key) as reverie:
                await watcher.watch(reverie, group.id)
        async with AsyncReverie(self.victim.url, self.engines.world.key) as reverie:
            page = await reverie.load_conversation(group.id)
        self._check(name, group.id, page, watcher, written)

    async def _fall(self, watching: asyncio.Task[None]) -> None:
        async def has_fallen() -> bool:
            return self.victim is not None and self.victim.process.returncode is not None

        await eventually(has_fallen, 40)
        self.at = None
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching

    def _find(self, name: str) -> Sequence[int]:
        """Each write makes a new file."""
        return [place.stat().st_ino for place in self.engines.world.folder.rglob(name)]

    def _check(
        self, name: str, group: Any, page: Any, watcher: Watcher, written: Sequence[int]
    ) -> None:
        is_told = any(UNKNOWN_EFFECT in request.body_text for request in self.models.requests)
        found = self._find(name)
        assert found == written if written or is_told else len(found) == 1, name
        assert [item.content for item in page.items if item.turn] == [ANSWER], name
        assert [turn.status for turn in page.turns] == ["done"], name
        assert watcher.of("result") == [{"status": "done", "content": ANSWER}], name
        assert len(watcher.of("stop")) == 1, name
        # A text that was on its way when the worker died is in the result alone.
        assert ANSWER.startswith(watcher.text()) or watcher.text() == "I count. ", name
        said = rows(self.engines.world.database.admin_url, SAID, str(group))
        assert said == [("user", f"Count in {name}."), ("assistant", ANSWER)], name


@asynccontextmanager
async def _open_walk(world: World) -> AsyncIterator[_Walk]:
    made: list[_Walk] = []
    port = port_of(world.database.service_url)
    async with (
        chat_server(_answer) as models,
        StepProxy("127.0.0.1", port, lambda step: made[0].reached(step)) as proxy,
        open_engine_world(world) as engines,
    ):
        made.append(_Walk(engines, models, proxy))
        yield made[0]


def _choose(steps: Sequence[Step]) -> list[Step]:
    """The steps of a worker, from its claim to its end: all, or the first of a few."""
    claimed, ended = steps.index(("engine_claim", 1)), steps.index(("engine_end", 1))
    worker = [step for step in steps[claimed : ended + 1] if step[0] != RENEWED]
    return worker if ALL else [step for step in worker if step[0] in FEW and step[1] == 1]


@pytest.mark.timeout(WALK_SECONDS)
async def test_a_worker_killed_at_any_statement_of_a_turn_is_followed_by_one_that_finishes(
    world: World,
) -> None:
    async with _open_walk(world) as walk:
        walk.victim = await walk.start()
        async with AsyncReverie(walk.victim.url, world.key) as reverie:
            await reverie.put_agent("doer", {"ask": []})
        await walk.run("whole", None)
        steps = _choose(walk.proxy.steps)
        assert {name for name, _ in steps} >= set(FEW)
        for number, step in enumerate(steps):
            await walk.run(f"count{number}", step)
        print(f"killed at {len(steps)} steps: {steps}")
