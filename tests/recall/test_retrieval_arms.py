"""The weights of the retrieval arms, and the learned-sparse arm."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import pytest

from reverie.inference.model_catalogue import BGE_SMALL
from reverie.inference.token_counters import EstimatingTokenCounter, TokenCounter
from reverie.runtime.settings.settings import Settings
from reverie.store.search.embedding_models import TenantModel
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.recall.pipeline.recall import MIN_VOCABULARY_SHARE, compute_arm_weights
from reverie_services.recall.settings import build_recall_settings
from tests.support.stack import Stack, running_stack
from tests.support.tables import value


class BlindTokenCounter(EstimatingTokenCounter):
    """The counter of a model that knows no word."""

    def vocabulary_share(self, text: str) -> float:
        return 0.0


def test_meaning_uses_the_tokenizer_of_the_tenants_model_and_not_the_configured_one(
    tmp_path: Path,
) -> None:
    counters: dict[str, TokenCounter] = {
        "blind": BlindTokenCounter(),
        "reads": EstimatingTokenCounter(),
    }
    settings = build_recall_settings(Settings(home=tmp_path))
    models = {1: TenantModel("blind"), 2: TenantModel("reads")}
    deps: Any = SimpleNamespace(
        settings=settings,
        model_manager=SimpleNamespace(
            get_counter=counters.__getitem__, sparse_counter=EstimatingTokenCounter()
        ),
        embedding_models=SimpleNamespace(get_cached=models.__getitem__),
    )
    whole = settings.arm_weights["meaning"]
    assert compute_arm_weights(deps, 1, "怎么避免客户隐私").arms["meaning"] == pytest.approx(
        whole * MIN_VOCABULARY_SHARE
    )
    assert compute_arm_weights(deps, 2, "怎么避免客户隐私").arms["meaning"] == whole


TEXTS = (
    "The outage of Postgres was caused by a disk that ran full",
    "The wine of the office is kept in the cellar",
    "Release notes are written by whoever merged last",
)
QUERY = "what caused the failure of the database?"
COUNT_SPARSE = "select count(*) from sparse_splade_tiny where tenant = %s"


async def _remember_texts(stack: Stack) -> list[str]:
    items = [{"content": text, "scope": "project/shop"} for text in TEXTS]
    answers = (await stack.post("/v1/remember/batch", {"items": items}))["items"]
    await stack.settled()
    return [one["id"] for one in answers]


async def _recall(stack: Stack, **more: Any) -> Any:
    return await stack.post("/v1/recall", {"query": QUERY, "scopes": ["project/shop"], **more})


async def test_candidates_are_scored_by_sparse_weights_too(stack: Stack) -> None:
    ids = await _remember_texts(stack)
    assert value(stack.admin_url, COUNT_SPARSE, stack.number()) == len(TEXTS)
    answer = await _recall(stack)
    assert answer["degraded"] == []
    first = answer["memories"][0]
    assert (first["id"], first["arms"]["sparse"]) == (ids[0], 1)
    assert await _recall(stack, as_of=datetime.now(UTC).isoformat())
    await stack.call("DELETE", f"/v1/memories/{ids[0]}", headers={"If-Match": "*"})
    assert value(stack.admin_url, COUNT_SPARSE, stack.number()) == len(TEXTS) - 1


async def test_a_memory_without_sparse_weights_is_found_by_the_other_arms(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with running_stack(database, nats_url, model_home(), recall_sparse="off") as before:
        ids = await _remember_texts(before)
        assert value(before.admin_url, COUNT_SPARSE, before.number()) == 0
        answer = await _recall(before)
        assert answer["degraded"] == []
        assert all("sparse" not in one["arms"] for one in answer["memories"])
    async with running_stack(database, nats_url, model_home()) as after:
        again = await _recall(after)
        assert [one["id"] for one in again["memories"]] == [o["id"] for o in answer["memories"]]
        assert {one["id"] for one in again["memories"]} == set(ids)


async def test_a_configured_but_missing_arm_is_reported(
    database: DatabaseUrls, nats_url: str, tmp_path: Path
) -> None:
    copytree(model_home() / "models" / BGE_SMALL.name, tmp_path / "models" / BGE_SMALL.name)
    more = {"model_download": False, "recall_sparse": "on"}
    async with running_stack(database, nats_url, tmp_path, **more) as stack:
        await _remember_texts(stack)
        answer = await _recall(stack)
        assert answer["degraded"] == ["sparse"]
        assert answer["search_mode"] == "hybrid"
        assert answer["memories"]
