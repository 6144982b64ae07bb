"""The clock of ingest, on real Postgres, where events were lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from reverie.domain.ids import new_id
from reverie.inference.slot import ModelSlot
from reverie.ingest import rounds
from reverie.ingest.letters import Letters
from reverie.ingest.order import Order
from reverie.ingest.parts import Parts
from reverie.ingest.rounds import ROUND, Left, do_rounds, keep_time
from reverie.ingest.settings import ingest_settings
from reverie.runtime.settings import Settings
from reverie.store.llm import LlmLedger
from reverie.testing.bus import MemoryBus
from reverie.testing.servers import Database
from tests.integration.store_parts import Store, admin_rows, new, open_store, write
from tests.stack import eventually

MANY = ROUND + 10
ID = new_id()


@dataclass(frozen=True)
class Place:
    """Ingest without a model, and more memories than a round takes that no event reached."""

    parts: Parts
    store: Store


@pytest.fixture(name="place")
async def _place(database: Database, tmp_path: Path) -> AsyncIterator[Place]:
    async with open_store(database) as store:
        scope = "project/shop"
        await write(store, *(new(f"see src/part{n}.py", scope=scope) for n in range(MANY)))
        own: dict[str, Any] = {
            "settings": replace(ingest_settings(Settings()), sweep_age=0.0, sweep_seconds=0.01),
            "bus": MemoryBus(),
            "model": ModelSlot("none", tmp_path, None, 1, False),
            "language": None,
            "llm": LlmLedger(store.db, 0, 0),
            "order": Order(),
            "letters": Letters(),
        }
        stores = {
            name: kind(store.db) for name, kind in get_type_hints(Parts).items() if name not in own
        }
        parts = Parts(**own, **stores)
        yield Place(parts, store)


async def test_without_a_model_every_lost_memory_gets_its_anchors(place: Place) -> None:
    async def anchored() -> bool:
        found = admin_rows(place.store.admin_url, "select 1 from edge where kind = 'touches'")
        return len(found) == MANY

    clock = asyncio.create_task(keep_time(place.parts))
    try:
        await eventually(anchored)
    finally:
        clock.cancel()
        with suppress(asyncio.CancelledError):
            await clock


async def test_a_round_passes_over_what_a_round_left(place: Place) -> None:
    left = Left()
    first = await do_rounds(place.parts, left)
    left.ids.update(memory for _, _, memory in first)
    second = await do_rounds(place.parts, left)
    left.ids.update(memory for _, _, memory in second)
    assert (len(first), len(second)) == (ROUND, MANY - ROUND)
    assert len(left.ids) == MANY
    assert await do_rounds(place.parts, left) == []


async def test_what_another_derived_meanwhile_is_not_left(place: Place) -> None:
    left, missed = Left(), await do_rounds(place.parts, Left())
    admin_rows(place.store.admin_url, "update memory set enriched_version = version returning 1")
    await rounds._enrich_all(place.parts, missed, left)
    assert left.ids == set()


async def test_what_was_left_is_tried_again_when_the_model_comes_and_after_an_hour() -> None:
    left = Left()
    left.renewed(False, 0.0)
    left.ids.add(ID)
    left.renewed(False, 3599.0)
    assert left.ids == {ID}
    left.renewed(True, 3599.0)
    assert left.ids == set()
    left.ids.add(ID)
    left.renewed(True, 2 * 3600.0)
    assert left.ids == set()
