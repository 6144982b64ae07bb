"""What is written one by one is enriched before what comes in bulk."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, LiteralString

import pytest

from reverie.bus.interface import MessageBus
from reverie.bus.nats_bus import connect
from reverie.bus.streams import INGEST_ENRICH_BULK
from reverie.contracts.events import MEMORY_STREAM
from reverie.inference.embedder import OnnxEmbedder, Vectors
from reverie_services.ingest import write_bursts
from reverie_services.ingest.app import MAX_IN_FLIGHT
from tests.support import tables
from tests.support.import_files import send_import
from tests.support.stack import Stack, eventually

SCOPE = "project/shop"
DERIVED: LiteralString = """
select count(*) from memory where content like %s and enriched_version = version
"""
FILE = f"""# {SCOPE}

<!-- scope: {SCOPE} -->

<!-- segment: one -->
Oil is kept in the cellar.
"""


async def _announced(bus: MessageBus) -> list[str]:
    """The subjects that request the enrichment of a memory, in the order of the stream."""
    messages = await bus.read_page(MEMORY_STREAM, "memory.default.>", 0, 100)
    return [message.subject for message in messages if message.subject.endswith(".remembered")]


async def test_batches_imports_and_bursts_are_announced_in_bulk_and_all_else_is_not(
    alone: Stack, nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    single, bulk = "memory.default.remembered", "memory.default.bulk.remembered"
    expected: list[str] = []
    async with connect(nats_url, "test") as bus:
        assert await bus.wait_connected(30)

        async def announced() -> bool:
            return await _announced(bus) == expected

        async def write(subjects: Sequence[str], path: str, body: dict[str, Any]) -> Any:
            answer = await alone.post(path, body)
            expected.extend(subjects)
            await eventually(announced)
            return answer

        made = await write([single], "/v1/remember", {"content": "A lamp is lit", "scope": SCOPE})
        items = [{"content": f"Lamp {n} is lit", "scope": SCOPE} for n in range(2)]
        await write([bulk] * 2, "/v1/remember/batch", {"items": items})
        place = {"commit": "4e1d9c2a", "branch": "main", "files": ["src/lamp.py"]}
        again = {"content": "Lamp 1 is lit", "scope": SCOPE, "git": place}
        await write([single], "/v1/remember", again)
        await write(
            [bulk], "/v1/remember/batch", {"items": [{**again, "content": "Lamp 0 is lit"}]}
        )
        changed = {"content": "No lamp is lit", "reason": "it is day"}
        reply = await alone.call("PATCH", f"/v1/memories/{made['id']}", changed)
        assert reply.status == 200, reply
        expected.append(single)
        await eventually(announced)
        status, _ = await send_import(alone, FILE, kind="text/markdown")
        assert status == 200
        expected.append(bulk)
        await eventually(announced)
        # What one tenant writes faster than it is embedded lets the others pass.
        monkeypatch.setattr(write_bursts, "BYTES_PER_SECOND", 0.0)
        share = "A lamp. " * (write_bursts.BURST_BYTES // 8)
        await write([single], "/v1/remember", {"content": f"{share} One.", "scope": SCOPE})
        await write([bulk], "/v1/remember", {"content": "Two lamps are lit", "scope": SCOPE})
        monkeypatch.setattr(write_bursts, "BYTES_PER_SECOND", 1e9)
        await write([single], "/v1/remember", {"content": "Three lamps are lit", "scope": SCOPE})


def test_a_burst_is_counted_in_bytes_for_each_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_bursts, "BYTES_PER_SECOND", 0.0)
    bursts, size = write_bursts.WriteBursts(), write_bursts.BURST_BYTES
    assert not bursts.is_burst(1, "灯" * (size // 3 + 1))
    assert bursts.is_burst(1, "灯")
    assert not bursts.is_burst(2, "o" * (size - 1))
    assert not bursts.is_burst(2, "o")
    assert bursts.is_burst(2, "o")


async def test_an_event_of_bulk_is_told_to_watchers_by_its_name(stack: Stack) -> None:
    start = (await stack.get("/v1/events/page"))["next"]
    items = [{"content": f"Wick {n} is trimmed", "scope": SCOPE} for n in range(3)]
    made = (await stack.post("/v1/remember/batch", {"items": items}))["items"]

    await stack.settled()
    page = await stack.get(f"/v1/events/page?event=remembered&after={start}")
    told = [(item["event"], item["data"]["id"]) for item in page["items"]]
    assert told == [("remembered", item["id"]) for item in made]


async def test_a_single_memory_is_enriched_while_a_batch_of_its_tenant_waits(
    alone: Stack, nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_on, embed, count = asyncio.Event(), OnnxEmbedder.embed, MAX_IN_FLIGHT + 4

    async def embed_late(self: OnnxEmbedder, texts: Sequence[str]) -> Vectors:
        if any(text.startswith("Imported") for text in texts):
            await let_on.wait()
        return await embed(self, texts)

    async def derived(pattern: str, expected: int) -> bool:
        return bool(tables.value(alone.admin_url, DERIVED, pattern) == expected)

    monkeypatch.setattr(OnnxEmbedder, "embed", embed_late)
    items = [{"content": f"Imported lamp {n} is lit", "scope": SCOPE} for n in range(count)]
    await alone.post("/v1/remember/batch", {"items": items})
    async with connect(nats_url, "test") as bus:
        assert await bus.wait_connected(30)

        async def on_bus(expected: int) -> bool:
            return await bus.lag(INGEST_ENRICH_BULK) == expected

        await eventually(partial(on_bus, count))
        await alone.post("/v1/remember", {"content": "Alone, a lamp is lit", "scope": SCOPE})
        await eventually(partial(derived, "Alone%", 1))
        assert await derived("Imported%", 0)
        let_on.set()
        await eventually(partial(derived, "Imported%", count))
        await eventually(partial(on_bus, 0))
