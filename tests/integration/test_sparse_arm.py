"""The sparse arm: it judges what the other arms found, and is done without where it is missing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from typing import Any

from reverie.inference.catalogue import BGE_SMALL
from reverie.testing.models import model_home
from reverie.testing.servers import Database
from tests.stack import Stack, eventually, running_stack
from tests.tables import value

TEXTS = (
    "The outage of Postgres was caused by a disk that ran full",
    "The wine of the office is kept in the cellar",
    "Release notes are written by whoever merged last",
)
QUERY = "what caused the failure of the database?"
KEPT = "select count(*) from sparse_splade_tiny where tenant = %s"


async def _filled(stack: Stack) -> list[str]:
    items = [{"content": text, "scope": "project/shop"} for text in TEXTS]
    answers = (await stack.post("/v1/remember/batch", {"items": items}))["items"]

    async def enriched() -> bool:
        behind = "select count(*) from memory where enriched_version < version and tenant = %s"
        return bool(value(stack.admin_url, behind, stack.number()) == 0)

    await eventually(enriched)
    return [one["id"] for one in answers]


async def _asked(stack: Stack, **more: Any) -> Any:
    return await stack.post("/v1/recall", {"query": QUERY, "scopes": ["project/shop"], **more})


async def test_what_was_found_is_judged_by_its_weighted_words_too(stack: Stack) -> None:
    ids = await _filled(stack)
    assert value(stack.admin_url, KEPT, stack.number()) == len(TEXTS)
    answer = await _asked(stack)
    assert answer["degraded"] == []
    first = answer["memories"][0]
    assert (first["id"], first["arms"]["sparse"]) == (ids[0], 1)
    assert await _asked(stack, as_of=datetime.now(UTC).isoformat())
    await stack.call("DELETE", f"/v1/memories/{ids[0]}", headers={"If-Match": "*"})
    assert value(stack.admin_url, KEPT, stack.number()) == len(TEXTS) - 1


async def test_a_memory_that_the_sparse_model_has_not_read_is_found_by_the_other_arms(
    database: Database, nats_url: str
) -> None:
    async with running_stack(database, nats_url, model_home(), recall_sparse="off") as before:
        ids = await _filled(before)
        assert value(before.admin_url, KEPT, before.number()) == 0
        answer = await _asked(before)
        assert answer["degraded"] == []
        assert all("sparse" not in one["arms"] for one in answer["memories"])
    async with running_stack(database, nats_url, model_home()) as after:
        again = await _asked(after)
        assert [one["id"] for one in again["memories"]] == [o["id"] for o in answer["memories"]]
        assert {one["id"] for one in again["memories"]} == set(ids)


async def test_where_it_is_switched_on_and_missing_the_answer_says_so(
    database: Database, nats_url: str, tmp_path: Path
) -> None:
    copytree(model_home() / "models" / BGE_SMALL.name, tmp_path / "models" / BGE_SMALL.name)
    more = {"model_pull": False, "recall_sparse": "on"}
    async with running_stack(database, nats_url, tmp_path, **more) as stack:
        await _filled(stack)
        answer = await _asked(stack)
        assert answer["degraded"] == ["sparse"]
        assert answer["search_mode"] == "hybrid"
        assert answer["memories"]
