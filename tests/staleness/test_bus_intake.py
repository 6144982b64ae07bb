"""Git changes published on the bus, and the permissions of their publishers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from pathlib import Path

import nats
import pytest

from reverie.bus.dead_letters import list_dead_letters
from reverie.bus.interface import MessageBus
from reverie.bus.nats_bus import connect
from reverie.bus.streams import STALENESS_CHANGES
from reverie.domain.access.principals import KeyRole
from reverie.embedded.servers.binaries import find_nats_server as nats_server_binary
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.staleness.test_http_intake import CHANGE, SHA, counted, stored_changes
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import Tables, rows


@pytest.fixture
def stack(alone: Stack) -> Stack:
    """A system of the test's own: its subjects name the first tenant."""
    return alone


async def test_valid_changes_are_taken_from_the_bus_and_others_become_dead_letters(
    stack: Stack, nats_url: str
) -> None:
    await stack.post("/v1/remember", {"content": "x", "scope": "project/shop"})
    whole = {name: value for name, value in CHANGE.items() if name != "project"}
    bad_files = [
        {"path": "../a", "status": "deleted"},
        {"path": "a.py", "status": "modified", "hunks": [[3, 4, 3, 4], [6, 1, 9, 1]]},
    ]
    wrong: list[tuple[str, bytes, str]] = [
        ("git.default.shop.changed", b"{", "not JSON"),
        ("git.default.shop.changed", b"[1]", "no JSON object"),
        ("git.default.shop.changed", b"{}", "not a git event"),
        ("git.nobody.shop.changed", json.dumps(whole).encode(), "no such tenant"),
        ("git.default.shop.changed", json.dumps({**whole, "project": "x"}).encode(), "the subject"),
        ("git.default.shop.changed", json.dumps({**whole, "tenant": 2}).encode(), "the subject"),
        *(
            (
                "git.default.shop.changed",
                json.dumps({**whole, "files": [bad]}).encode(),
                f"files.0.{place}",
            )
            for bad, place in zip(bad_files, ("path", "hunks"), strict=True)
        ),
    ]
    async with connect(nats_url, "test") as bus:
        await bus.wait_connected(30)
        with closing(Tables(stack.admin_url)) as tables:
            await stack.settled()
            before = counted(tables)
            for subject, data, _ in wrong:
                await bus.send(subject, data, {})
            await eventually(lambda: _taken(bus))
            assert counted(tables) == before
            reasons = [one.reason for one in await list_dead_letters(bus)]
            assert len(reasons) == len(wrong)
            for reason, (_, _, told) in zip(reasons, wrong, strict=True):
                assert told in reason
            for _ in range(2):
                await bus.send("git.default.shop.changed", json.dumps(whole).encode(), {})
            await eventually(lambda: _taken(bus))
            await stack.settled()
        assert [one["after"] for one in stored_changes(stack)] == [SHA]
        assert len(await list_dead_letters(bus)) == len(wrong)


async def _taken(bus: MessageBus) -> bool:
    return await bus.lag(STALENESS_CHANGES) == 0


CONFIG = """\
listen: 127.0.0.1:-1
ports_file_dir: {folder}
max_payload: 1MB
jetstream {{ store_dir: {folder}/store }}
authorization {{ users: [
  {{ user: reverie, password: all }}
  {{ user: acme-ci, password: some, permissions: {{
    publish: ["git.acme.*.changed"], subscribe: ["_INBOX_acme.>"]
  }} }}
] }}
"""


@pytest.fixture
async def guarded_nats(tmp_path: Path) -> AsyncIterator[str]:
    """A NATS with a user that may publish one tenant's subject; its address, without a user."""
    (tmp_path / "nats.conf").write_text(CONFIG.format(folder=tmp_path))
    server = await asyncio.create_subprocess_exec(
        *(str(nats_server_binary()), "-c", str(tmp_path / "nats.conf")),
        stderr=asyncio.subprocess.DEVNULL,
    )

    def noted() -> str | None:
        text = "".join(one.read_text() for one in tmp_path.glob("*.ports"))
        return json.loads(text)["nats"][0] if text.endswith("}") else None

    async def port() -> str | None:
        return noted()

    try:
        found = await eventually(port)
        assert found is not None
        yield found.removeprefix("nats://")
    finally:
        server.kill()
        await server.wait()


async def test_a_publisher_limited_to_one_tenants_subject_reaches_no_other(
    database: DatabaseUrls, guarded_nats: str
) -> None:
    refused: list[str] = []

    async def note(error: Exception) -> None:
        refused.append(str(error))

    async with (
        running_stack(database, f"nats://reverie:all@{guarded_nats}", model_home()) as stack,
        AsyncExitStack() as closing_last,
    ):
        for tenant in ("acme", "other"):
            key = stack.key_of(tenant=tenant, role=KeyRole.ADMIN)
            await stack.post("/v1/remember", {"content": "x", "scope": "project/shop"}, key=key)
        ci = await nats.connect(
            f"nats://acme-ci:some@{guarded_nats}",
            inbox_prefix=b"_INBOX_acme",
            error_cb=note,
        )
        closing_last.push_async_callback(ci.close)
        whole = {name: value for name, value in CHANGE.items() if name != "project"}
        await ci.publish("git.other.shop.changed", json.dumps(whole).encode())
        await ci.subscribe("git.>")
        await ci.flush()

        async def both_refused() -> bool:
            return len(refused) == 2

        await eventually(both_refused)
        assert all("permissions violation" in one.lower() for one in refused)
        ack = await ci.jetstream().publish("git.acme.shop.changed", json.dumps(whole).encode())
        assert ack.stream == "GIT"
        stored = "select t.name, g.after from git_event g join tenant t on t.id = g.tenant"

        async def taken() -> bool:
            return bool(rows(stack.admin_url, stored))

        await eventually(taken)
        assert rows(stack.admin_url, stored) == [("acme", SHA)]
