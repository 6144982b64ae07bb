"""Changes of a memory that happen at once, and the ETag that shows them."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.types.json import Jsonb

from reverie.domain.core.ids import new_id
from reverie.domain.core.memory import hash_content
from tests.ingest.test_memory_changes import _edit, _enriched, _found, _remember
from tests.support.stack import Stack, eventually
from tests.support.store_setup import PATH
from tests.support.tables import value


async def _while_locked(stack: Stack, memory: str, change: dict[str, Any], late: Any) -> Any:
    """The answer of the request `late`, which came during another change of the memory."""
    sql = """
    select memory_change(%s, t.name, %s, '{*}', '{*}', null, %s, 'other', 'first', 'edited', '{}',
                         false)
    from tenant t where t.id = %s
    """
    waits = (
        "select count(*) from pg_stat_activity"
        " where wait_event_type = 'Lock' and datname = current_database()"
    )

    async def waiting() -> bool:
        return bool(value(stack.admin_url, waits))

    with psycopg.connect(stack.admin_url, options=PATH) as connection:
        number = stack.number()
        connection.execute(sql, [number, memory, Jsonb(change), number])
        reply = asyncio.create_task(late)
        await eventually(waiting)
        connection.commit()
        return await reply


async def test_a_change_of_tags_keeps_the_content_that_was_written_meanwhile(stack: Stack) -> None:
    one = await _remember(stack, "The gateway retries thrice", tags=["old"])
    text = "The importer streams parquet"
    first = {"content": text, "hash": "\\x" + hash_content(text), "index_text": text}
    tags = stack.call("PATCH", f"/v1/memories/{one}", {"tags": ["columnar"]})
    done = await _while_locked(stack, one, first, tags)
    assert (done.status, done.body["version"]) == (200, 3)
    now = await stack.get(f"/v1/memories/{one}")
    assert (now["content"], now["tags"]) == (text, ["columnar"])
    assert await _found(stack, "parquet") == [one]
    assert await _found(stack, "columnar") == [one]


async def test_a_rollback_follows_what_was_written_meanwhile(stack: Stack) -> None:
    one = await _remember(stack, "Deploys go out on Mondays")
    await _edit(stack, one, {"content": "Deploys go out on Tuesdays"})
    back = stack.call("POST", f"/v1/memories/{one}/rollback", {"version": 1})
    done = await _while_locked(stack, one, {"pinned": True}, back)
    assert (done.status, done.body["version"]) == (200, 4)
    now = await stack.get(f"/v1/memories/{one}")
    assert (now["content"], now["pinned"]) == ("Deploys go out on Mondays", True)


async def test_the_etag_follows_all_that_a_reader_can_see(stack: Stack) -> None:
    one = await _remember(stack, "Logs are JSON lines", confidence=0.5)
    other = await _remember(stack, "Logs go to stdout")
    await eventually(lambda: _enriched(stack, one))
    path = f"/v1/memories/{one}"

    async def tag() -> str:
        return str((await stack.call("GET", path)).headers["Etag"])

    seen = [await tag()]
    again = await stack.call("GET", path, headers={"If-None-Match": seen[0]})
    assert again.status == 304
    for change in (
        {"content": "Logs are JSON lines", "confidence": 0.5},
        {"content": "Logs are JSON lines", "tags": ["logs"]},
        {"content": "Logs are JSON lines", "pinned": True},
        {"content": "Logs are JSON lines", "metadata": {"owner": "ops"}},
    ):
        assert (await stack.post("/v1/remember", change))["status"] == "duplicate"
        seen.append(await tag())
    await stack.post("/v1/links", {"from": one, "to": other, "type": "depends_on"})
    seen.append(await tag())
    assert len(set(seen)) == len(seen)
    stale = await stack.call("PATCH", path, {"pinned": False}, headers={"If-Match": seen[0]})
    assert stale.status == 412
    await _edit(stack, one, {"pinned": False}, headers={"If-Match": seen[-1]})


async def test_what_an_import_adds_to_a_memory_is_a_version(stack: Stack) -> None:
    one = await _remember(stack, "Logs rotate daily", confidence=0.5, tags=["logs"])
    first = await stack.get(f"/v1/memories/{one}")
    headers = {"Authorization": f"Bearer {stack.key}"}
    async with stack.http.get(f"{stack.url}/v1/export", headers=headers) as answer:
        header, *lines = (await answer.text()).splitlines()
    [memory] = [json.loads(line) for line in lines if json.loads(line)["type"] == "memory"]
    other = {**memory, "id": str(new_id()), "tags": ["logs", "ops"], "confidence": 0.9}

    async def imported() -> None:
        data = f"{header}\n{json.dumps(other)}\n"
        kind = {"Content-Type": "application/x-ndjson"}
        async with stack.http.post(
            f"{stack.url}/v1/import?strategy=merge", data=data, headers=headers | kind
        ) as answer:
            assert answer.status == 200, await answer.text()

    await imported()
    now = await stack.get(f"/v1/memories/{one}")
    assert (now["tags"], now["version"]) == (["logs", "ops"], first["version"] + 1)
    before = await stack.get(f"/v1/memories/{one}?as_of={quote(first['updated_at'])}")
    assert (before["tags"], before["base_confidence"]) == (["logs"], first["base_confidence"])
    await imported()
    assert (await stack.get(f"/v1/memories/{one}"))["version"] == first["version"] + 1
