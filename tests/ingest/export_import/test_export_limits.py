"""An export names nothing that the key may not read, and is no burden for ever."""

from __future__ import annotations

import json

import aiohttp
import pytest

from reverie.domain.access.principals import KeyRole
from reverie.domain.core.ids import new_id
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.import_files import (
    export_file,
    memory_line,
    send_import,
    stale_mark,
    version_line,
)
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import run, value


async def test_an_export_names_no_memory_that_the_key_may_not_read(stack: Stack) -> None:
    hidden, shown = (
        memory_line("hidden", scope="project/b"),
        memory_line("shown", scope="project/a"),
    )
    shown |= {"status": "superseded", "superseded_by": hidden["id"]}
    spread = stale_mark(
        origin=shown["id"], via=["-part_of->", hidden["id"], "-part_of->", str(new_id())]
    )
    shown["stale"] = [stale_mark(origin=hidden["id"], path="src/hidden.ts"), spread]
    past = version_line(shown, state={"scope": "project/b", "superseded_by": hidden["id"]})
    status, body = await send_import(stack, export_file(hidden, shown, past))
    assert (status, body["created"]) == (200, 3)
    reader = stack.key_of(role=KeyRole.READER, reads=("project/a",), writes=())
    headers = {"Authorization": f"Bearer {reader}"}
    async with stack.http.get(f"{stack.url}/v1/export", headers=headers) as answer:
        told = await answer.text()
    assert shown["id"] in told
    for secret in (hidden["id"], "src/hidden.ts", "memory_version"):
        assert secret not in told
    line = next(one for one in map(json.loads, told.splitlines()) if one.get("id") == shown["id"])
    assert [mark["path"] for mark in line["stale"]] == ["src/a.ts"]
    status, body = await send_import(stack, told.encode(), key=stack.apart().key)
    assert (status, body["rejected"]) == (200, 0)


async def test_an_export_that_nobody_reads_keeps_no_snapshot(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with running_stack(
        database, nats_url, model_home(), transfer_timeout=0.5, pool_max=4, ingest_role="api"
    ) as stack:
        for batch in range(15):
            items = [{"content": f"Fact {n} of {batch}"} for n in range(100)]
            await stack.post("/v1/remember/batch", {"items": items})
        # Three pages, each larger than what the sockets of both ends hold: up to 40 MB.
        run(stack.admin_url, "update memory set content = repeat('x', 100000)")
        headers = {"Authorization": f"Bearer {stack.key}"}
        answer = await stack.http.get(f"{stack.url}/v1/export", headers=headers)

        async def is_released() -> bool:
            query = "select count(*) from pg_stat_activity where backend_xmin is not null"
            query += " and datname = current_database() and pid <> pg_backend_pid()"
            return bool(value(stack.admin_url, query + " and state like 'idle in%%'") == 0)

        await eventually(is_released)
        with pytest.raises(aiohttp.ClientError):
            await answer.read()
        answer.close()
