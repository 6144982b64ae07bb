"""NATS permissions let each service publish and subscribe only what it needs."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from reverie.bus.credentials import NatsCredentials
from reverie.bus.interface import MessageBus
from reverie.bus.nats_bus import connect
from reverie.bus.permissions import PUBLISH_PERMISSIONS, inbox_prefix, render_accounts
from reverie.bus.stream_backup import backup_streams
from reverie.bus.streams import DREAM_WORKERS, ENGINE_WORKERS, STALENESS_CHANGES, ensure_streams
from reverie.bus.users import ADMIN_USER
from reverie.contracts.events import ENGINE_STREAM
from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.embedded import processes
from reverie.embedded.ports import find_free_port, is_free
from reverie.embedded.servers import binaries, nats
from reverie.testing.servers import NatsServer
from tests.bus.nats_operator import Operator, user_key
from tests.support.stack import eventually

LAST = "refused.last"
"""A subject to which nobody may publish."""
DEPLOYED = Path(__file__).parents[2] / "deploy" / "nats" / "users.conf"


def _url(server: NatsServer, user: str) -> str:
    found = nats.find(server.home)
    assert found is not None
    url = found.url_for(server.home, user)
    assert url is not None
    return url


async def _refusals(
    url: str, publish: list[str], subscribe: list[str], creds: Path | None = None
) -> list[str]:
    """What the server would not let this user do."""
    told: list[str] = []

    async def note(error: Exception) -> None:
        told.append(str(error).lower())

    client = Client()
    await client.connect(url, error_cb=note, allow_reconnect=False, user_credentials=creds)
    for subject in publish:
        await client.publish(subject, b"{}")
    for subject in subscribe:
        await client.subscribe(subject)
    # The server answers in turn: what is refused before this is told before it.
    await client.publish(LAST, b"{}")
    await eventually(lambda: asyncio.sleep(0, any(LAST in one for one in told)))
    await client.close()
    return [one for one in told if "permissions violation" in one and LAST not in one]


@pytest.mark.parametrize("user", sorted(PUBLISH_PERMISSIONS))
async def test_a_service_can_neither_publish_nor_subscribe_outside_its_permissions(
    nats_server: NatsServer, user: str
) -> None:
    await ensure_streams(nats_server.url)
    foreign = {
        "ingest": ["secrets.x", "$SYS.REQ.SERVER.PING"],
        "dream": ["git.acme.shop.changed", "dead.GIT.x", "$JS.API.STREAM.DELETE.MEMORY"],
        "staleness": ["dead.MEMORY.x", "$JS.API.STREAM.PURGE.DREAM", "$JS.ACK.DREAM.x.1"],
        "engine": ["memory.acme.edited", "dead.MEMORY.x", "$JS.API.STREAM.PURGE.ENGINE"],
    }[user]
    heard = [
        "memory.>",
        "git.>",
        ">",
        f"{inbox_prefix('dream' if user != 'dream' else 'ingest')}.>",
    ]
    found = await _refusals(_url(nats_server, user), foreign, heard)
    for subject in (*foreign, *heard):
        assert any(f'"{subject.lower()}"' in one for one in found), (subject, found)
    assert await _refusals(_url(nats_server, user), [], [f"{inbox_prefix(user)}.>"]) == []


async def test_each_service_receives_its_work_and_can_report_the_result(
    nats_server: NatsServer,
) -> None:
    await ensure_streams(nats_server.url)
    work = {"dream": DREAM_WORKERS, "staleness": STALENESS_CHANGES}
    subjects = {"dream": "dream.acme.abc.requested", "staleness": "git.acme.shop.changed"}
    async with connect(_url(nats_server, "ingest"), "ingest") as keeper:
        assert await keeper.wait_connected(30)
        for user, spec in work.items():
            await keeper.send(subjects[user], b"{}", {})
            async with connect(_url(nats_server, user), user) as bus:
                assert await bus.wait_connected(30)
                await _handle_one(bus, user)
                assert await bus.lag(spec) == 0
                await bus.send("memory.acme.digested", b"{}", {})


async def test_the_engine_receives_turns_and_watches_its_own_events(
    nats_server: NatsServer,
) -> None:
    await ensure_streams(nats_server.url)
    async with connect(_url(nats_server, "engine"), "engine") as bus:
        assert await bus.wait_connected(30)
        await bus.send("turn.acme.x.requested", b"{}", {})
        await _handle_one(bus, "engine")
        assert await bus.lag(ENGINE_WORKERS) == 0
        await bus.send("engine.acme.g.event", b"{}", {})
        _, last = await bus.sequence_range(ENGINE_STREAM)
        async with (
            asyncio.timeout(60),
            aclosing(bus.watch(ENGINE_STREAM, "engine.acme.g.event", 0)) as watched,
        ):
            assert (await anext(watched)).seq == last == 1


async def _handle_one(bus: MessageBus, user: str) -> None:
    work = {"dream": DREAM_WORKERS, "staleness": STALENESS_CHANGES, "engine": ENGINE_WORKERS}
    spec = work[user]
    async with asyncio.timeout(60):
        async for delivery in bus.deliveries(spec):
            await delivery.ack()
            return


@contextmanager
def _served(folder: Path, config: str) -> Iterator[str]:
    """The address of a server of its own, by a whole configuration."""
    port, file = find_free_port(), folder / "nats.conf"
    head = f"listen: 127.0.0.1:{port}\njetstream {{ store_dir: {json.dumps(str(folder))} }}\n"
    file.write_text(head + config)
    log = folder / "nats.log"
    child = processes.spawn([str(binaries.find_nats_server()), "-c", str(file)], log)
    try:
        processes.wait_until_ready(child, lambda: not is_free(port, "127.0.0.1"), "NATS", log)
        yield f"127.0.0.1:{port}"
    finally:
        processes.stop(child.pid, [(signal.SIGKILL, 5.0)], child)


async def test_another_account_sees_none_of_our_streams_or_messages(tmp_path: Path) -> None:
    ours = render_accounts(dict.fromkeys((ADMIN_USER, *PUBLISH_PERMISSIONS), "word"))
    other = "accounts { OTHER: { jetstream: enabled, users: [{ user: other, password: word }] } }\n"
    both = ours.replace("accounts {", other.removesuffix("}\n").rstrip(), 1)
    with _served(tmp_path, both) as place:
        await ensure_streams(f"nats://{ADMIN_USER}:word@{place}")
        async with connect(f"nats://ingest:word@{place}", "ingest") as bus:
            assert await bus.wait_connected(30)
            stranger = Client()
            await stranger.connect(f"nats://other:word@{place}", allow_reconnect=False)
            try:
                hears = await stranger.subscribe("memory.>")
                await stranger.flush()
                await bus.send("memory.acme.remembered", b"{}", {})
                assert await bus.count_messages("MEMORY") == 1
                assert await stranger.jetstream().streams_info() == []
                with pytest.raises(NotFoundError):
                    await stranger.jetstream().stream_info("MEMORY")
                # What it says on subjects of ours reaches nobody of us.
                await stranger.publish("memory.acme.remembered", b"own")
                assert (await hears.next_msg(timeout=10)).data == b"own"
                assert hears.pending_msgs == 0
                assert await bus.count_messages("MEMORY") == 1
            finally:
                await stranger.close()


async def test_an_account_without_jetstream_is_retried_until_it_has_it(
    tmp_path: Path,
) -> None:
    bare = "accounts { BARE: { users: [{ user: keeper, password: word }] } }\n"
    with _served(tmp_path, bare) as place, pytest.raises(Unavailable, match="not enabled"):
        await ensure_streams(f"nats://keeper:word@{place}")


async def test_services_log_in_by_credentials_files_and_by_seeds(tmp_path: Path) -> None:
    operator = Operator()
    creds, seed = tmp_path / "dream.creds", tmp_path / "dream.nk"
    creds.write_text(
        operator.creds("dream", PUBLISH_PERMISSIONS["dream"], [f"{inbox_prefix('dream')}.>"])
    )
    keeper = tmp_path / "keeper.creds"
    keeper.write_text(operator.creds("keeper", [">"], [">"]))
    with _served(tmp_path, operator.config()) as place:
        url = f"nats://{place}"
        await ensure_streams(url, credentials=NatsCredentials(creds=keeper))
        async with connect(url, "ingest", credentials=NatsCredentials(creds=keeper)) as bus:
            assert await bus.wait_connected(30)
            await bus.send("dream.acme.abc.requested", b"{}", {})
        await _works_as_dream(url, NatsCredentials(creds=creds))
        assert await _refusals(url, ["git.acme.shop.changed"], ["memory.>"], creds) != []
    key, public = user_key()
    seed.write_text(key)
    lines = render_accounts(dict.fromkeys((ADMIN_USER, *PUBLISH_PERMISSIONS), "word"))
    by_key = lines.replace("user: dream, password: word", f"nkey: {public}")
    (tmp_path / "static").mkdir()
    with _served(tmp_path / "static", by_key) as place:
        await ensure_streams(f"nats://{ADMIN_USER}:word@{place}")
        async with connect(f"nats://ingest:word@{place}", "ingest") as bus:
            assert await bus.wait_connected(30)
            await bus.send("dream.acme.abc.requested", b"{}", {})
        await _works_as_dream(f"nats://{place}", NatsCredentials(seed))
        # Whoever has neither is turned away.
        async with connect(f"nats://{place}", "dream") as bus:
            assert not await bus.wait_connected(0.5)
    (tmp_path / "empty").touch()
    for name in ("none", "empty"):
        with pytest.raises(Misconfigured, match="nats_creds"):
            connect("nats://127.0.0.1:1", "dream", credentials=NatsCredentials(tmp_path / name))


async def _works_as_dream(url: str, who: NatsCredentials) -> None:
    async with connect(url, "dream", credentials=who) as bus:
        assert await bus.wait_connected(30)
        await _handle_one(bus, "dream")
        assert await bus.lag(DREAM_WORKERS) == 0


def test_the_deployed_users_are_the_expected_ones() -> None:
    named = {user: f"${'NATS' if user == ADMIN_USER else f'NATS_{user.upper()}'}_PASSWORD"
             for user in (ADMIN_USER, *PUBLISH_PERMISSIONS)}  # fmt: skip
    assert DEPLOYED.read_text().endswith(render_accounts(named))


async def test_a_wrong_password_is_named_and_prints_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    accounts = render_accounts(dict.fromkeys((ADMIN_USER, *PUBLISH_PERMISSIONS), "word"))
    with _served(tmp_path, accounts) as place:
        url = f"nats://{ADMIN_USER}:wrong@{place}"
        with pytest.raises(Unavailable, match="refuses the login: check user and password"):
            await ensure_streams(url)
        with pytest.raises(Unavailable, match="refuses the login: check user and password"):
            await backup_streams(url, tmp_path, NatsCredentials())
    assert not [record for record in caplog.records if record.exc_info]
