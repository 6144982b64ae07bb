"""A memory whose text takes too long is kept, and holds up neither others nor the bus."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import LiteralString
from uuid import UUID

import pytest

from reverie.domain.entities.recognition import Entity, extract_entities
from reverie_services.ingest.enrich import derivation_timeout, enrichment, mentions
from tests.support import tables
from tests.support.log_capture import capture_logs
from tests.support.stack import Stack

ENRICHED: LiteralString = "select enriched_version >= version from memory where id = %s"
VECTORS: LiteralString = """
select count(v.chunk) from chunk c
join vec_bge_small_en_v1_5 v on v.tenant = c.tenant and v.chunk = c.no where c.memory = %s
"""
HOSTILE = "Nobody can read this one: xyzzy"


async def test_a_memory_that_takes_too_long_to_read_holds_up_no_others(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings, is_over = [], threading.Event()

    def extract_slowly(text: str) -> list[Entity]:
        if text == HOSTILE:
            readings.append(text)
            is_over.wait(30)
        return extract_entities(text)

    monkeypatch.setattr(mentions, "extract_entities", extract_slowly)
    monkeypatch.setattr(derivation_timeout, "DERIVATION_SECONDS", 2.0)

    async def remember(content: str) -> str:
        body = {"content": content, "scope": "project/shop"}
        return str((await stack.post("/v1/remember", body))["id"])

    with capture_logs() as logs, ExitStack() as at_the_end:
        at_the_end.callback(is_over.set)
        first = await remember("Deploys go through Redis in src/deploy.py")
        hostile = await remember(HOSTILE)
        last = await remember("The cache lies in Redis, see src/cache.py")
        await stack.settled()
        for memory in (first, hostile, last):
            assert tables.value(stack.admin_url, ENRICHED, memory)
    assert len(readings) == 1
    assert [line["part"] for line in logs if line["event"] == "derivation_cut"] == ["mentions"]


async def test_a_memory_that_takes_too_long_to_embed_keeps_the_vectors_it_has(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derivation_timeout, "EMBEDDING_SECONDS", 0.0)
    monkeypatch.setattr(enrichment, "MAX_BATCH_TEXTS", 2)
    sentences = (f"Part {n} of the manual explains lamp {n * 7} and its wick." for n in range(600))
    contents = ["A lamp is lit at dusk.", "\n\n".join(sentences), "Oil is kept in the cellar."]

    with capture_logs() as logs:
        items = [{"content": content, "scope": "project/shop"} for content in contents]
        answer = await stack.post("/v1/remember/batch", {"items": items})
        memories = [item["id"] for item in answer["items"]]
        await stack.settled()
    chunks = [tables.value(stack.admin_url, VECTORS, memory) for memory in memories]
    cuts = [line for line in logs if line["event"] == "derivation_cut"]
    assert chunks == [1, 2, 1]
    assert [(line["memory"], line["part"]) for line in cuts] == [(memories[1], "vectors")]


async def test_a_text_that_waits_for_a_thread_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation_timeout, "DERIVATION_SECONDS", 0.5)
    loop, released = asyncio.get_running_loop(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        loop.set_default_executor(pool)
        # Another text has the only thread for longer than the limit.
        pool.submit(released.wait)
        loop.call_later(1.0, released.set)
        kept = await derivation_timeout.derive_in_thread(
            UUID(int=1), "part", lambda: True, default=False
        )
        released.set()
    assert kept
