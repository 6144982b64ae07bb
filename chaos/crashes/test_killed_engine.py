"""kill -9 of the engine's worker at each point of a turn where it waits for somebody else.

At one point it is not killed but stands still past its lease, and wakes up beside its successor.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from chaos.crashes.engine_world import EngineWorld, Watcher, open_engine_world
from chaos.crashes.service_processes import Served, World
from reverie.client import AsyncReverie
from reverie.testing.chaos_proxy import CHUNK_BYTES, ChaosProxy
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse, chat_server
from reverie_services.engine.turns.capabilities import UNKNOWN_EFFECT
from tests.support.proxies import port_of
from tests.support.stack import eventually

MEMORY = "memory"
APPROVAL = "approval"
STALLED = "stalled"
STEPS = {"first answer": 1, "second answer": 2, STALLED: 2}
POINTS = (MEMORY, *STEPS, APPROVAL)


class _AskedGateway(ChaosProxy):
    """A gateway that never hears of a preflow; `is_asked` once there was one."""

    is_asked = False

    async def _pump(self, reader: StreamReader, writer: StreamWriter) -> None:
        while data := await reader.read(CHUNK_BYTES):
            if b"POST /v1/preflow" in data:
                self.is_asked = True
                await asyncio.Event().wait()
            writer.write(data)
            await writer.drain()


@dataclass
class _Script:
    """Two answers and a written file between them; it waits at one until it is let go."""

    point: str
    is_free: bool = False

    def answer(self, asked: ChatRequest) -> ChatAnswer:
        """Looks like a model that writes a file."""
        if not asked.results:
            call = ToolUse("write_file", {"path": "count", "content": "x\n"})
            return ChatAnswer("I count. ", (call,), hold=self._hold("first answer"))
        return ChatAnswer("Counted, once and for all.", hold=self._hold("second answer", STALLED))

    def _hold(self, *points: str) -> Callable[[], bool] | None:
        return (lambda: self.is_free) if self.point in points else None

    def free(self) -> None:
        """Lets the turn go on."""
        self.is_free = True


@pytest.mark.timeout(300)
async def test_a_killed_engine_loses_doubles_and_repeats_nothing(world: World) -> None:
    async with open_engine_world(world) as engines:
        for point in POINTS:
            await _kill_at(engines, point)


async def _kill_at(engines: EngineWorld, point: str) -> None:
    world, folder = engines.world, engines.world.folder / point.replace(" ", "-")
    folder.mkdir()
    script = _Script(point)
    async with (
        chat_server(script.answer) as models,
        _AskedGateway("127.0.0.1", port_of(engines.gateway)) as asked,
    ):
        cut_off = {"gateway_url": f"http://127.0.0.1:{asked.port}"} if point == MEMORY else {}
        first = await engines.start(models.url, folder, **cut_off)
        async with AsyncReverie(first.url, world.key) as reverie:
            await reverie.put_agent("doer", {"ask": ["write_file"] if point == APPROVAL else []})
            group = await reverie.create_group(["doer"], project="killed")
            posted = await reverie.post_message(group.id, "Count.")
            watcher = Watcher(posted.after)
            if point in STEPS:
                await watcher.watch(reverie, group.id, "text_delta", STEPS[point])
            else:
                until = "approval" if point == APPROVAL else "turn_started"
                await watcher.watch(reverie, group.id, until)
        if point == MEMORY:
            await eventually(lambda: _is_asked(asked))
        second = await engines.start(models.url, folder)
        if point == STALLED:
            os.kill(first.process.pid, signal.SIGSTOP)
        else:
            await first.kill()
        written = {place: place.stat().st_ino for place in folder.rglob("count")}
        script.free()
        async with AsyncReverie(second.url, world.key) as reverie:
            for call in watcher.of("approval"):
                await reverie.approve_call(group.id, posted.turns["doer"], call["call"], True)
            await watcher.watch(reverie, group.id)
            if point == STALLED:
                os.kill(first.process.pid, signal.SIGCONT)
                await eventually(lambda: _is_idle(world, first), 40)
                await first.kill()
            page = await reverie.load_conversation(group.id)
        await second.kill()
    assert not any(UNKNOWN_EFFECT in request.body_text for request in models.requests)
    assert len(written) == (point in {"second answer", STALLED})
    [place] = folder.rglob("count")
    assert place.read_text() == "x\n"
    # Each write makes a new file: what was written before the kill is not written again.
    assert written.get(place) in {None, place.stat().st_ino}
    answers = [item.content for item in page.items if item.turn]
    assert answers == ["Counted, once and for all."] == [watcher.text()]
    assert len(watcher.of("result")) == 1
    assert len(watcher.of("approval")) == (point == APPROVAL)
    [turn] = page.turns
    # Those of a turn that waited for a person are counted anew.
    assert (turn.status, turn.attempts) == ("done", 1 if point == APPROVAL else 2)


async def _is_idle(world: World, worker: Served) -> bool:
    async with world.http.get(worker.url + "/metrics") as answer:
        return "reverie_engine_turns_running 0.0" in await answer.text()


async def _is_asked(gateway: _AskedGateway) -> bool:
    return gateway.is_asked
