"""A dream service without workers answers calls, and sessions wait for a worker."""

from __future__ import annotations

from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Stack, eventually, running_stack

TALK = [
    {"role": "user", "content": "We decided to keep all prices in cents in src/money.py."},
    {"role": "assistant", "content": "Noted: prices are integers of cents from now on."},
]


async def waiting(stack: Stack) -> float:
    """How many scopes ingest says there are in the queue: what a scaler of workers asks."""
    async with stack.http.get(f"{stack.urls['ingest']}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    wanted = ("reverie_dreams_queued ", "reverie_dreams_running ")
    return sum(float(line.split()[-1]) for line in lines if line.startswith(wanted))


async def test_a_service_without_workers_answers_calls_and_sessions_wait(
    database: DatabaseUrls, nats_url: str
) -> None:
    home = model_home()
    async with running_stack(
        database, nats_url, home, dream_worker_enabled=False, scheduler_interval=0.2
    ) as door:
        start = {"agent": "ann", "project": "shop"}
        session = (await door.post("/v1/sessions/start", start))["session"]
        await door.post("/v1/turns", {"session": session, "turns": TALK})
        asked = await door.post("/v1/dream", {"scope": "project/shop"})
        assert asked["scope"] == "project/shop"
        assert await waiting(door) == 1
        assert (await door.get("/v1/dreams?scope=project/shop"))["items"] == []
        [one] = (await door.get("/v1/dream?scope=project/shop"))["items"]
        assert one["scope"] == "project/shop"
        # Tending is the door's, for there may be no worker to do it.
        assert (await door.post("/v1/maintenance/run", {}))["unfinished"] == []
        assert await waiting(door) == 1
    async with running_stack(database, nats_url, home, scheduler_interval=0.2) as worked:

        async def done() -> bool:
            runs = (await worked.get("/v1/dreams?scope=project/shop"))["items"]
            return [run["status"] for run in runs] == ["done"]

        await eventually(done)
        await eventually(lambda: nobody_waits(worked))


async def nobody_waits(stack: Stack) -> bool:
    return await waiting(stack) == 0
