"""kill -9 of the engine's worker at each point of a turn where it waits for somebody else."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from chaos.crashes.service_processes import Served, World, served
from reverie.client import AsyncReverie
from reverie.contracts.engine import EngineEvent
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse, chat_server
from reverie_services.engine.turns.capabilities import UNKNOWN_EFFECT

VAULT_KEY = base64.b64encode(b"k" * 32).decode()
POINTS = ("first answer", "second answer")


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
        return ChatAnswer("Counted, once and for all.", hold=self._hold("second answer"))

    def _hold(self, point: str) -> Callable[[], bool] | None:
        return (lambda: self.is_free) if point == self.point else None

    def free(self) -> None:
        """Lets the turn go on."""
        self.is_free = True


@dataclass
class _Watcher:
    """What a client saw, across both workers."""

    events: list[EngineEvent] = field(default_factory=list)

    def text(self) -> str:
        """The answer, as a client puts it together: a higher epoch replaces its step."""
        steps: dict[int, tuple[int, str]] = {}
        for event in self.events:
            if event.type == "text_delta":
                epoch, text = steps.get(event.step, (event.epoch, ""))
                text = text if epoch == event.epoch else ""
                steps[event.step] = (event.epoch, text + event.data["text"])
        return steps[max(steps)][1]


@asynccontextmanager
async def _services(world: World) -> AsyncIterator[str]:
    """Ingest, and the gateway; the engine is started by the test."""
    async with (
        served(world, "ingest", vault_key=VAULT_KEY) as ingest,
        served(world, "recall", ingest_url=ingest.url, vault_key=VAULT_KEY) as gateway,
    ):
        yield gateway.url


@pytest.mark.timeout(300)
async def test_a_killed_engine_loses_doubles_and_repeats_nothing(world: World) -> None:
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(_services(world))
        for point in POINTS:
            await _kill_at(world, gateway, point)


async def _kill_at(world: World, gateway: str, point: str) -> None:
    folder = world.folder / point.replace(" ", "-")
    folder.mkdir()
    script, watcher = _Script(point), _Watcher()
    async with chat_server(script.answer) as models, AsyncExitStack() as workers:

        async def start() -> Served:
            endpoint = {"provider": "openai", "model": "stub", "url": f"{models.url}/v1"}
            settings: dict[str, Any] = {
                "gateway_url": gateway,
                "engine_models": json.dumps({"default": endpoint}),
                "engine_folder": folder,
                "engine_lease": 2,
                "vault_key": VAULT_KEY,
            }
            return await workers.enter_async_context(served(world, "engine", **settings))

        first = await start()
        async with AsyncReverie(first.url, world.key) as reverie:
            await reverie.put_agent("doer", {"ask": []})
            group = await reverie.create_group(["doer"], project="killed")
            posted = await reverie.post_message(group.id, "Count.")
            position = posted.after
            awaited = {"first answer": 1, "second answer": 2}[point]
            async for at, event in reverie.watch_group(group.id, after=posted.after):
                position = at
                watcher.events.append(event)
                if event.type == "text_delta" and event.step == awaited:
                    break
        second = await start()
        await first.kill()
        written = {place: place.stat().st_ino for place in folder.rglob("count")}
        script.free()
        async with AsyncReverie(second.url, world.key) as reverie:
            async for _, event in reverie.watch_group(group.id, after=position):
                watcher.events.append(event)
                if event.type == "result":
                    break
            page = await reverie.load_conversation(group.id)
    assert not any(UNKNOWN_EFFECT in request.body_text for request in models.requests)
    assert len(written) == (point == "second answer")
    [place] = folder.rglob("count")
    assert place.read_text() == "x\n"
    # Each write makes a new file: what was written before the kill is not written again.
    assert written.get(place) in {None, place.stat().st_ino}
    answers = [item.content for item in page.items if item.turn]
    assert answers == ["Counted, once and for all."] == [watcher.text()]
    assert [event.type for event in watcher.events].count("result") == 1
    [turn] = page.turns
    assert (turn.status, turn.attempts) == ("done", 2)
