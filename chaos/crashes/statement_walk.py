"""Workers that are killed at a chosen SQL statement."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.crashes.service_processes import ServiceStarter, quick_streams
from reverie.bus.interface import MessageBus
from reverie.bus.nats_bus import connect
from reverie.bus.outbox_relay import EventPublisher, relay
from reverie.domain.core.ids import new_id
from reverie.store.platform.outbox import OutboxTable
from reverie.store.sessions.sessions import SessionStore, TurnToAppend
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.dream.dependencies import DigestDependencies
from tests.dream.test_dream_worker import dream_parts
from tests.support.proxies import Step, StepProxy, at_port, port_of
from tests.support.stack import eventually
from tests.support.store_setup import Store, admin_rows, open_store
from tests.support.stub_llm import LlmRequest, stub_llm

ALL = os.environ.get("REVERIE_TEST_STEPS") == "all"
WALK_SECONDS = 3600 if ALL else 120
BESIDE = frozenset(
    ("dream_renew", "dream_told", "dream_told, committed", "dream_queue", "schema_stands")
)
"""What a worker asks beside its work."""
SOON = 15.0
"""Seconds within which the scope of a killed worker is dreamt over again."""
TALK = (
    ("user", "The {0} misbehave in src/{0}/main.py, please find out why they do so at night."),
    ("tool", "Edit: `src/{0}/main.py` [ok]"),
    ("assistant", "The root cause: {0} were counted twice in src/{0}/main.py. Fixed."),
    ("user", "Remember: {0} are always logged with their own id, and never with a name."),
    ("assistant", "Understood, {0} are logged with their id in src/{0}/log.py from now on."),
)
FACTS = ("retries", "timeouts")


@dataclass
class Walk:
    """Workers on one database and bus, with a model; the victim's statements pass a proxy."""

    store: Store
    parts: DigestDependencies
    bus: MessageBus
    starter: ServiceStarter
    log: Path
    proxy: StepProxy
    settings: dict[str, object]
    victim: int = 0
    at: Step | None = None

    def reached(self, step: Step) -> None:
        """Kills the victim where it is to die."""
        if step == self.at:
            self.starter.kill(self.victim)

    async def worker(self, behind: bool = False) -> int:
        """Another worker; `behind` the proxy it is the victim."""
        url = self.store.service_url
        url = at_port(url, self.proxy.port) if behind else url
        told = self.settings | {"database_url": url}
        environment = {f"REVERIE_{name.upper()}": str(value) for name, value in told.items()}
        return self.starter.start("dream", environment, self.log).pid

    async def fall(self, step: Step, seconds: float = 40.0) -> None:
        """A worker that dies at that step."""
        self.proxy.reset()
        self.at = step
        self.victim = await self.worker(behind=True)

        async def fallen() -> bool:
            return self.victim not in self.starter.running

        await eventually(fallen, seconds)
        self.at = None

    async def tell(self, scope: str) -> None:
        """Two ended sessions with something worth keeping in each, and a ticket."""
        me, parts = self.store.me, self.parts
        sessions = SessionStore(self.store.db)
        for fact in FACTS:
            session, _ = await sessions.start(me, new_id(), scope, {"agent": "ann"})
            said = [(role, text.format(fact)) for role, text in TALK]
            turns = [TurnToAppend(new_id(), role, text, text) for role, text in said]
            await sessions.append(me, session, turns)
            await sessions.end(me, session, None)
        _, ticket = await parts.dreams.request(me.tenant, "one", scope, "session end", {})
        await EventPublisher(self.bus, OutboxTable(self.store.db)).publish(me.tenant, [ticket])

    async def told(self) -> bool:
        """Whether all events were published."""
        return self.rows("select count(*) from outbox") == [(0,)]

    def rows(self, sql: str, *args: object) -> list[tuple[Any, ...]]:
        """What a superuser sees."""
        return admin_rows(self.store.admin_url, sql, *args)


def _answer(asked: LlmRequest) -> Any:
    """Words what the first and the last item of a slice say, as they stand."""
    made = [
        {"content": f"The root cause: {fact} were counted twice in src/{fact}/main.py.",
         "kind": "bug", "turns": [3], "priority": 0.8}
        for fact in FACTS
        if f"src/{fact}/main.py" in asked.text
    ]  # fmt: skip
    return {"memories": made}


@asynccontextmanager
async def open_walk(
    database: DatabaseUrls, nats_url: str, workers: ServiceStarter, folder: Path
) -> AsyncIterator[Walk]:
    await quick_streams(nats_url)
    made: list[Walk] = []
    url, log = database.service_url, folder / "workers.log"
    async with (
        open_store(database) as store,
        connect(nats_url, "witness") as bus,
        stub_llm() as (stub, model_url),
        StepProxy("127.0.0.1", port_of(url), lambda step: made[0].reached(step)) as proxy,
    ):
        assert await bus.wait_connected(10)
        stub.answer = _answer
        settings: dict[str, object] = {
            "home": model_home(),
            "nats_url": nats_url,
            "dream_port": 0,
            "worker_lease": 2.0,
            "embedding_model": "none",
            "log_level": "error",
            "outbox_sweep_after": 0.5,
            "llm_provider": "openai",
            "llm_url": f"{model_url}/v1",
            "llm_model": "stub",
        }
        made.append(Walk(store, dream_parts(store), bus, workers, log, proxy, settings))
        # As ingest does: a worker may have dreamt before it is on the bus.
        beside = asyncio.create_task(relay(bus, OutboxTable(store.db)))
        try:
            yield made[0]
        finally:
            beside.cancel()
            with suppress(asyncio.CancelledError):
                await beside


def chosen(steps: Collection[Step], few: Collection[str]) -> list[Step]:
    """What is walked: all steps, or the first of a few."""
    worth = [one for one in dict.fromkeys(steps) if one[0] not in BESIDE]
    return worth if ALL else [one for one in worth if one[0] in few and one[1] == 1]
