"""On the bus each service says and hears what it needs, and nothing else."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from nats.aio.client import Client

from reverie.bus.connection import connect
from reverie.bus.permissions import KEEPER, PUBLISHES, inbox_of, users
from reverie.bus.port import Bus
from reverie.bus.streams import DREAM_WORKERS, STALENESS_CHANGES, ensure_streams
from reverie.embedded import nats
from reverie.testing.servers import NatsServer

DEPLOYED = Path(__file__).parents[2] / "deploy" / "nats" / "users.conf"


def _url(server: NatsServer, user: str) -> str:
    found = nats.find(server.home)
    assert found is not None
    return found.url_of(server.home, user)


async def _refusals(url: str, publish: list[str], subscribe: list[str]) -> list[str]:
    """What the server would not let this user do."""
    told: list[str] = []

    async def note(error: Exception) -> None:
        told.append(str(error).lower())

    client = Client()
    await client.connect(url, error_cb=note, allow_reconnect=False)
    for subject in publish:
        await client.publish(subject, b"{}")
    for subject in subscribe:
        await client.subscribe(subject)
    await client.flush()
    with suppress(TimeoutError):
        async with asyncio.timeout(2):
            while len(told) < len(publish) + len(subscribe):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    await client.close()
    return [one for one in told if "permissions violation" in one]


@pytest.mark.parametrize("user", sorted(PUBLISHES))
async def test_a_service_can_neither_speak_nor_listen_elsewhere(
    nats_server: NatsServer, user: str
) -> None:
    await ensure_streams(nats_server.url)
    foreign = {
        "ingest": ["secrets.x", "$SYS.REQ.SERVER.PING"],
        "dream": ["git.acme.shop.changed", "dead.GIT.x", "$JS.API.STREAM.DELETE.MEMORY"],
        "staleness": ["dead.MEMORY.x", "$JS.API.STREAM.PURGE.DREAM", "$JS.ACK.DREAM.x.1"],
    }[user]
    heard = ["memory.>", "git.>", ">", f"{inbox_of('dream' if user != 'dream' else 'ingest')}.>"]
    found = await _refusals(_url(nats_server, user), foreign, heard)
    for subject in (*foreign, *heard):
        assert any(f'"{subject.lower()}"' in one for one in found), (subject, found)
    assert await _refusals(_url(nats_server, user), [], [f"{inbox_of(user)}.>"]) == []


async def test_each_service_takes_its_own_work_and_tells_what_became_of_it(
    nats_server: NatsServer,
) -> None:
    await ensure_streams(nats_server.url)
    work = {"dream": DREAM_WORKERS, "staleness": STALENESS_CHANGES}
    subjects = {"dream": "dream.acme.abc.requested", "staleness": "git.acme.shop.changed"}
    async with connect(_url(nats_server, "ingest"), "ingest") as keeper:
        assert await keeper.wait_connected(10)
        for user, spec in work.items():
            await keeper.send(subjects[user], b"{}", {})
            async with connect(_url(nats_server, user), user) as bus:
                assert await bus.wait_connected(10)
                await _one(bus, user)
                assert await bus.lag(spec) == 0
                await bus.send("memory.acme.digested", b"{}", {})


async def _one(bus: Bus, user: str) -> None:
    spec = {"dream": DREAM_WORKERS, "staleness": STALENESS_CHANGES}[user]
    async with asyncio.timeout(20):
        async for delivery in bus.deliveries(spec):
            await delivery.ack()
            return


def test_the_users_that_are_deployed_are_these() -> None:
    named = {user: f"${'NATS' if user == KEEPER else f'NATS_{user.upper()}'}_PASSWORD"
             for user in (KEEPER, *PUBLISHES)}  # fmt: skip
    assert DEPLOYED.read_text().endswith(users(named))
