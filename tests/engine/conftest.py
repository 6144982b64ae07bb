"""The engine beside the shared system, with a scripted model whose script each test sets."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr

from reverie.contracts.events import read_server_sent_events
from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ChatServer, chat_server
from reverie.testing.servers import TestRun
from reverie_services.engine import app
from reverie_services.recall import app as recall
from tests.support.background_loop import BackgroundResource, open_in_background
from tests.support.stack import Stack, eventually

PRICED = "claude-haiku-4-5"
"""A model whose price is known: 1 dollar for a million tokens in, 5 out."""


EXTRA_TOOLS = ["run_command"] if shutil.which("bwrap") else []


@dataclass
class EngineService:
    """The running engine, its scripted model, and the folder of its file tools."""

    url: str
    gateway: str
    models: ChatServer
    folder: Path
    settings: Settings


@dataclass
class Engine:
    """The engine to a tenant of the test's own."""

    stack: Stack
    service: EngineService
    events: list[dict[str, Any]] = field(default_factory=list)

    def play(self, script: Callable[[ChatRequest], ChatAnswer] | Sequence[ChatAnswer]) -> None:
        """Sets what the model answers: by a function, or one answer after the other."""
        models = self.service.models
        models.requests.clear()
        if callable(script):
            models.script = script
            return
        answers = iter(script)
        models.script = lambda _: next(answers, ChatAnswer("nothing more"))

    @property
    def folder(self) -> Path:
        """Where the file tools of the tenant work."""
        return self.service.folder / str(self.stack.number())

    @property
    def requests(self) -> list[ChatRequest]:
        """What the model was asked."""
        return self.service.models.requests

    async def agent(self, name: str, **spec: Any) -> None:
        """Creates an agent."""
        reply = await self.stack.call("PUT", f"{self.service.url}/v1/agents/{name}", spec)
        assert reply.status == 200, reply

    async def group(self, *agents: str, **fields: Any) -> str:
        """A new group of agents."""
        body = {"agents": list(agents), "project": f"p{uuid4().hex[:8]}", **fields}
        made = await self.stack.post(f"{self.service.url}/v1/groups", body)
        return str(made["id"])

    async def call(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """A call that may fail."""
        return await self.stack.call(method, self.service.url + path, body, **more)

    async def say(self, group: str, text: str, **fields: Any) -> dict[str, Any]:
        """Says something, waits until all turns are over, and returns them by agent."""
        posted = await self.post(group, text, **fields)
        return await self.ended(group, posted)

    async def post(self, group: str, text: str, **fields: Any) -> dict[str, Any]:
        """Says something."""
        path = f"{self.service.url}/v1/groups/{group}/messages"
        posted: dict[str, Any] = await self.stack.post(path, {"text": text, **fields})
        return posted

    async def ended(self, group: str, posted: dict[str, Any]) -> dict[str, Any]:
        """The turns of a message, once none of its chain is open."""

        async def look() -> list[dict[str, Any]] | None:
            turns = [t for t in (await self.log(group))["turns"] if t["chain"] == posted["id"]]
            is_over = all(turn["status"] in {"done", "failed", "stopped"} for turn in turns)
            return turns if turns and is_over else None

        return {turn["agent"]: turn for turn in await eventually(look) or ()}

    async def turn(self, group: str, agent: str, status: str) -> dict[str, Any]:
        """The newest turn of an agent, once it has a status."""

        async def look() -> dict[str, Any]:
            turns = [t for t in (await self.log(group))["turns"] if t["agent"] == agent]
            return turns[0] if turns and turns[0]["status"] == status else {}

        return await eventually(look)

    async def log(self, group: str) -> dict[str, Any]:
        """What was said, and the turns."""
        found: dict[str, Any] = await self.stack.get(
            f"{self.service.url}/v1/groups/{group}/messages", params={"limit": 500}
        )
        return found

    async def answers(self, group: str) -> list[str]:
        """What agents said."""
        return [item["content"] for item in (await self.log(group))["items"] if item["turn"]]

    async def watch(self, group: str, after: int, until: str = "result") -> list[dict[str, Any]]:
        """The events after a position up to the first of a type; each with its position."""
        seen: list[dict[str, Any]] = []
        url = f"{self.service.url}/v1/groups/{group}/events?after={after}"
        headers = {"Authorization": f"Bearer {self.stack.key}"}
        async with self.stack.http.get(url, headers=headers) as answer:
            async for event in read_server_sent_events(answer.content):
                if event.data:
                    seen.append({**json.loads(event.data), "at": int(event.id)})
                    if seen[-1]["type"] == until:
                        break
        return seen


def command_environment(engine: Engine, home: Path) -> dict[str, str]:
    """The environment of a command that talks to the engine, with a home of its own."""
    return {
        "REVERIE_API_KEY": engine.stack.key,
        "REVERIE_GATEWAY_URL": engine.service.gateway,
        "REVERIE_HOME": str(home),
    }


@asynccontextmanager
async def open_engine(stack: Stack, folder: Path, **overrides: Any) -> AsyncIterator[EngineService]:
    """The engine on free ports, beside the services of a stack."""
    async with chat_server(lambda _: ChatAnswer("hello")) as models:
        chat = {"provider": "openai", "model": "stub", "url": f"{models.url}/v1"}
        endpoints = {
            "default": chat,
            "second": {"provider": "anthropic", "model": "stub-2", "url": models.url, "key": "k"},
            "blind": {**chat, "sees": False},
            "priced": {"provider": "anthropic", "model": PRICED, "url": models.url, "key": "k"},
        }
        settings = stack.settings.model_copy(
            update={
                "gateway_url": stack.url,
                "engine_models": SecretStr(json.dumps(endpoints)),
                "engine_folder": folder,
                "engine_tools": EXTRA_TOOLS,
                "worker_lease": 10.0,
                **overrides,
            }
        )
        async with (
            app.open_service(settings) as service,
            start_service(service, settings) as url,
        ):
            gateway_settings = settings.model_copy(
                update={"engine_enabled": True, "engine_url": url}
            )
            async with (
                recall.open_service(gateway_settings) as gateway,
                start_service(gateway, gateway_settings) as gateway_url,
            ):
                yield EngineService(url, gateway_url, models, folder, settings)


@pytest.fixture(scope="session")
def engine_service(
    system: BackgroundResource[Stack], test_run: TestRun
) -> Iterator[BackgroundResource[EngineService]]:
    """One engine for the tests of a process."""
    folder = test_run.new_folder("agents")
    with system.in_use() as stack:
        opened = open_in_background(open_engine(stack, folder))
        held = opened.__enter__()
    try:
        yield held
    finally:
        with system.in_use():
            opened.__exit__(None, None, None)


@pytest.fixture
async def engine(
    engine_service: BackgroundResource[EngineService], stack: Stack
) -> AsyncIterator[Engine]:
    """The shared engine to a tenant of the test's own."""
    with engine_service.in_use() as service:
        yield Engine(stack, service)
