"""The engine as processes that a test can kill, beside the services that its turns call."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from chaos.crashes.service_processes import Served, World, served
from reverie.client import AsyncReverie
from reverie.contracts.engine import EngineEvent

VAULT_KEY = base64.b64encode(b"k" * 32).decode()


@dataclass
class EngineWorld:
    """Ingest and the gateway run; workers of the engine are started by a test."""

    world: World
    gateway: str
    workers: AsyncExitStack

    async def start(self, models: str, folder: Path, **settings: Any) -> Served:
        """Another worker, ready; it takes up what a dead one left after two seconds."""
        endpoint = {"provider": "openai", "model": "stub", "url": f"{models}/v1"}
        given = {
            "gateway_url": self.gateway,
            "engine_models": json.dumps({"default": endpoint}),
            "engine_folder": folder,
            "worker_lease": 2,
            "vault_key": VAULT_KEY,
            **settings,
        }
        return await self.workers.enter_async_context(served(self.world, "engine", **given))


@asynccontextmanager
async def open_engine_world(world: World) -> AsyncIterator[EngineWorld]:
    """All workers that are left are killed at the end."""
    async with (
        served(world, "ingest", vault_key=VAULT_KEY) as ingest,
        served(world, "recall", ingest_url=ingest.url, vault_key=VAULT_KEY) as gateway,
        AsyncExitStack() as workers,
    ):
        yield EngineWorld(world, gateway.url, workers)


@dataclass
class Watcher:
    """What a client saw, across workers, and the position from which it goes on."""

    position: int
    events: list[EngineEvent] = field(default_factory=list)

    async def watch(
        self, reverie: AsyncReverie, group: UUID, until: str = "result", step: int = 0
    ) -> None:
        """Notes what comes after the position, up to an event of a type; of a step, if given."""
        async for position, event in reverie.watch_group(group, after=self.position):
            self.position = position
            self.events.append(event)
            if event.type == until and step in {0, event.step}:
                return

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The data of the events of a type."""
        return [event.data for event in self.events if event.type == kind]

    def text(self) -> str:
        """The answer, as a client puts it together: a higher epoch replaces its step."""
        steps: dict[int, tuple[int, str]] = {}
        for event in self.events:
            if event.type == "text_delta":
                epoch, text = steps.get(event.step, (event.epoch, ""))
                text = text if epoch == event.epoch else ""
                steps[event.step] = (event.epoch, text + event.data["text"])
        return steps[max(steps)][1] if steps else ""
