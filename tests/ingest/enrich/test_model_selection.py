"""Tenants with mostly East Asian memories move to the multilingual model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import asyncpg
import pytest

from reverie.cli.operate.doctor.service_checks import find_backlog_problems
from reverie.cli.operate.service_metrics import MetricsSnapshot
from reverie.domain.core.errors import Unavailable
from reverie.domain.text.characters import MIN_EAST_ASIAN_TEXTS
from reverie.inference import model_manager
from reverie.inference.embedder import Embedder, Vectors
from reverie.inference.model_catalogue import DEFAULT_MODEL, MULTILINGUAL_MODEL, SPARSE_MODEL
from reverie.inference.model_manager import PROBE_TEXT, ModelManager
from reverie.inference.token_counters import EstimatingTokenCounter
from reverie.store.search.embedding_models import EmbeddingModelStore, build_table_name
from reverie.testing.models import FakeEmbedder, load_embedder_once, model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.ingest import model_selection_queue
from reverie_services.ingest.dependencies import ModelSelectionDependencies
from reverie_services.ingest.enrich.model_selection import run_model_selection, select_model
from reverie_services.ingest.enrich.reembed import reembed
from reverie_services.ingest.model_selection_queue import CHECK_EVERY, ModelSelectionQueue
from tests.support.stack import eventually, running_stack
from tests.support.store_setup import Store, admin_rows, app_connection, new, write
from tests.support.tables import blocked

CHINESE = "第{}个连接池的上限由值班同学每周调整"
ENGLISH = "Pool number {} has a limit that is looked at every week"
OTHER = MULTILINGUAL_MODEL
SPARE = SPARSE_MODEL
MOVED = "select id, model from tenant where model is not null"


class ScriptedModelManager(ModelManager):
    """A manager that has the multilingual model, or lacks it (`there`)."""

    def __init__(self, home: Path, there: bool = True) -> None:
        super().__init__(DEFAULT_MODEL, home, None, 1, False)
        self.there, self.wanted = there, list[str]()
        self._first_attempt_done.set()

    async def load(self, name: str) -> Embedder:
        self.wanted.append(name)
        if not self.there:
            raise Unavailable(f"model {name}", "no place gives it")
        return FakeEmbedder(name=name)


def _build_deps(
    store: Store, manager: ScriptedModelManager, is_allowed: bool = True
) -> ModelSelectionDependencies:
    models = EmbeddingModelStore(store.db)
    return ModelSelectionDependencies(
        models, cast("Any", manager), ModelSelectionQueue(), is_allowed
    )


async def _write_memories(store: Store, text: str, many: int) -> None:
    await write(store, *(new(text.format(n)) for n in range(many)))


async def test_a_tenant_of_chinese_memories_is_moved_once(store: Store, tmp_path: Path) -> None:
    manager = ScriptedModelManager(tmp_path)
    deps = _build_deps(store, manager)
    await _write_memories(store, CHINESE, MIN_EAST_ASIAN_TEXTS)
    assert await select_model(deps, store.me.tenant)
    assert admin_rows(store.admin_url, MOVED) == [(store.me.tenant, OTHER)]
    assert not await select_model(deps, store.me.tenant)
    assert (manager.wanted, deps.queue.unreadable) == ([OTHER], set())


async def test_a_tenant_with_few_or_mostly_other_memories_stays(
    store: Store, tmp_path: Path
) -> None:
    manager = ScriptedModelManager(tmp_path)
    deps = _build_deps(store, manager)
    await _write_memories(store, CHINESE, MIN_EAST_ASIAN_TEXTS - 1)
    assert not await select_model(deps, store.me.tenant)
    await _write_memories(store, CHINESE + "，今年也一样", 1)
    await _write_memories(store, ENGLISH, MIN_EAST_ASIAN_TEXTS + 1)
    assert not await select_model(deps, store.me.tenant)
    assert (admin_rows(store.admin_url, MOVED), manager.wanted) == ([], [])


async def test_a_tenant_whose_model_was_set_by_its_operator_stays(
    store: Store, tmp_path: Path
) -> None:
    deps, models = _build_deps(store, ScriptedModelManager(tmp_path)), EmbeddingModelStore(store.db)
    await _write_memories(store, CHINESE, MIN_EAST_ASIAN_TEXTS)
    await models.begin(store.me.tenant, DEFAULT_MODEL, 384, [])
    await models.switch(store.me.tenant, DEFAULT_MODEL)
    assert not await select_model(deps, store.me.tenant)
    # Nor is it moved by who looked at it before.
    await models.begin(store.me.tenant, OTHER, 384, [])
    await models.switch(store.me.tenant, OTHER)
    assert admin_rows(store.admin_url, MOVED) == [(store.me.tenant, DEFAULT_MODEL)]


async def test_where_the_model_may_not_be_selected_or_is_missing_the_tenant_is_reported(
    store: Store, tmp_path: Path
) -> None:
    await _write_memories(store, CHINESE, MIN_EAST_ASIAN_TEXTS)
    forbidden = _build_deps(store, ScriptedModelManager(tmp_path), is_allowed=False)
    assert not await select_model(forbidden, store.me.tenant)
    assert forbidden.queue.unreadable == {store.me.tenant}
    manager = ScriptedModelManager(tmp_path, there=False)
    missing = _build_deps(store, manager)
    with pytest.raises(Unavailable):
        await select_model(missing, store.me.tenant)
    assert missing.queue.unreadable == {store.me.tenant}
    assert admin_rows(store.admin_url, MOVED) == []
    manager.there = True
    assert await select_model(missing, store.me.tenant)
    assert missing.queue.unreadable == set()


@asynccontextmanager
async def _selecting(
    deps: ModelSelectionDependencies, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """Selects models in the background, and tries again at once."""
    monkeypatch.setattr(model_selection_queue, "RETRY_SECONDS", 0.01)
    task = asyncio.create_task(run_model_selection(deps))
    try:
        yield
    finally:
        task.cancel()


async def test_a_tenant_that_could_not_be_moved_is_moved_later_without_new_memories(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _write_memories(store, CHINESE, MIN_EAST_ASIAN_TEXTS)
    manager = ScriptedModelManager(tmp_path, there=False)
    deps = _build_deps(store, manager)
    deps.queue.observe(store.me.tenant, CHINESE)
    async with _selecting(deps, monkeypatch):
        await eventually(lambda: asyncio.sleep(0, len(manager.wanted) > 1))
        assert deps.queue.unreadable == {store.me.tenant}
        manager.there = True
        await eventually(lambda: asyncio.sleep(0, not deps.queue.unreadable))
    assert admin_rows(store.admin_url, MOVED) == [(store.me.tenant, OTHER)]


async def test_a_tenant_moved_by_its_operator_is_no_longer_reported(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _write_memories(store, CHINESE, MIN_EAST_ASIAN_TEXTS)
    deps = _build_deps(store, ScriptedModelManager(tmp_path), is_allowed=False)
    deps.queue.observe(store.me.tenant, CHINESE)
    async with _selecting(deps, monkeypatch):
        await eventually(lambda: asyncio.sleep(0, bool(deps.queue.unreadable)))
        assert deps.queue.unreadable == {store.me.tenant}
        await deps.models.begin(store.me.tenant, OTHER, 384, [])
        await deps.models.switch(store.me.tenant, OTHER)
        await eventually(lambda: asyncio.sleep(0, not deps.queue.unreadable))


async def test_a_tenant_is_queued_at_its_first_and_each_twentieth_such_memory() -> None:
    queue = ModelSelectionQueue()
    for _ in range(CHECK_EVERY):
        queue.observe(1, CHINESE)
        queue.observe(2, ENGLISH)
    queue.observe(3, CHINESE)
    queue.observe(1, CHINESE)
    assert [await queue.next_tenant() for _ in range(3)] == [1, 3, 1]


class InterruptedEmbedder(FakeEmbedder):
    """Embeds the probe text, and fails for any other."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if list(texts) != [PROBE_TEXT]:
            raise Unavailable("the model", "it was interrupted")
        return await super().embed(texts)


class InterruptedModelManager(ScriptedModelManager):
    """A manager whose model fails as soon as there are vectors to fill."""

    async def load(self, name: str) -> Embedder:
        return InterruptedEmbedder(name=name)


class LoadedFakeEmbedder(FakeEmbedder):
    """A model as it is loaded from files."""

    counter = EstimatingTokenCounter()

    async def warm(self) -> None:
        """Nothing to set up."""

    def set_metrics(self, metrics: object) -> None:
        """Counted by nobody."""

    def release_when_idle(self, seconds: float | None) -> None:
        """Stays in memory."""


async def test_chinese_memories_are_queried_with_the_other_model_afterwards(
    database: DatabaseUrls, nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str, *place: Any, **more: Any) -> Any:
        return (
            LoadedFakeEmbedder(name) if name == OTHER else load_embedder_once(name, *place, **more)
        )

    monkeypatch.setattr(model_manager, "load_embedder", load)
    async with running_stack(database, nats_url, model_home()) as stack:
        texts = [CHINESE.format(n) for n in range(CHECK_EVERY + 1)]
        items = [{"content": text, "scope": "project/shop"} for text in texts]
        for part in (items[:-1], items[-1:]):
            await stack.post("/v1/remember/batch", {"items": part})

        rows = f"select count(*) from {build_table_name(OTHER)}"

        async def by_the_other() -> Any:
            asked = {"query": texts[3], "scopes": ["project/shop"], "limit": 50}
            found = await stack.post("/v1/recall", asked)
            models = (await stack.get("/v1/models"))["models"]
            active = [one["name"] for one in models if one["active"] and one["state"] == "ready"]
            filled = admin_rows(database.admin_url, rows) == [(len(texts),)]
            whole = filled and OTHER in active and not found["degraded"]
            return found["memories"] if whole else None

        found = {one["content"]: one["arms"] for one in await eventually(by_the_other)}
        assert {"words", "meaning"} <= set(found[texts[3]])
    async with running_stack(database, nats_url, model_home()) as stack:

        async def before_anybody_asked() -> bool:
            [one] = [m for m in (await stack.get("/v1/models"))["models"] if m["name"] == OTHER]
            return bool(one["state"] == "ready")

        await eventually(before_anybody_asked)


async def test_a_model_that_is_already_open_is_not_loaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []

    def load(name: str, *place: Any, **more: Any) -> Any:
        loads.append(name)
        return LoadedFakeEmbedder(name)

    monkeypatch.setattr(model_manager, "load_embedder", load)
    manager = ModelManager(DEFAULT_MODEL, tmp_path, None, 1, False)
    loading = asyncio.create_task(manager.run())
    await manager.wait_for_first_attempt()
    assert (await manager.load(OTHER)).name == OTHER
    # Whatever was wanted beside has been loaded by then.
    manager.request_loading(SPARE)
    await manager.load(SPARE)
    loading.cancel()
    assert loads == [DEFAULT_MODEL, OTHER, SPARE]


def test_doctor_explains_what_to_do_where_a_model_cannot_read_the_memories() -> None:
    told = MetricsSnapshot({("reverie_tenants_unread", frozenset()): 1.0})
    [found] = find_backlog_problems({"ingest": told})
    assert found.level == "warning"
    # One that reads English better must not be moved with it.
    assert f"reverie reembed --tenant NAME --set embedding_model={OTHER}" in found.remedy
    none = MetricsSnapshot({("reverie_tenants_unread", frozenset()): 0.0})
    assert not list(find_backlog_problems({"ingest": none}))


@asynccontextmanager
async def _chunk_written(store: Store, text: str = CHINESE) -> AsyncIterator[Any]:
    """A transaction that wrote a memory's chunk with the first model, and stays open."""
    [memory] = await write(store, new(text))
    piece = {"start": 0, "stop": len(text), "hash": "00"}
    made = {"memory": str(memory), "first": 0, "model": DEFAULT_MODEL, "pieces": [piece]}
    async with app_connection(store.service_url, store.me.tenant) as connection:
        written = connection.transaction()
        await written.start()
        await connection.execute(
            "select reverie.derive_chunks($1, $2::text::jsonb,"
            " array[array_fill(0.1, array[384])::halfvec], array[null]::sparsevec[])",
            *(store.me.tenant, json.dumps([made])),
        )
        yield written


async def _waits(store: Store, moving: asyncio.Task[Any]) -> bool:
    return moving.done() or await blocked(store.admin_url)


async def test_memories_written_during_the_switch_are_embedded_too(store: Store) -> None:
    models, embedder = EmbeddingModelStore(store.db), FakeEmbedder(name=OTHER)
    async with _chunk_written(store) as written:
        moving = asyncio.create_task(
            reembed(models, models, embedder, store.me.tenant, lambda done, chunks: None)
        )
        await eventually(lambda: _waits(store, moving))
        await written.commit()
    assert await moving == 1


async def test_an_interrupted_switch_is_completed_by_the_next_check(
    store: Store, tmp_path: Path
) -> None:
    await _write_memories(store, CHINESE, MIN_EAST_ASIAN_TEXTS)
    async with _chunk_written(store, "最后一条") as written:
        moving = asyncio.create_task(
            select_model(_build_deps(store, InterruptedModelManager(tmp_path)), store.me.tenant)
        )
        await eventually(lambda: _waits(store, moving))
        await written.commit()
    with pytest.raises(Unavailable):
        await moving
    vectors = f"select count(*) from {build_table_name(OTHER)}"
    assert admin_rows(store.admin_url, MOVED) == [(store.me.tenant, OTHER)]
    assert admin_rows(store.admin_url, vectors) == [(0,)]
    # Another process, and the next memory that comes there.
    manager = ScriptedModelManager(tmp_path)
    deps = _build_deps(store, manager)
    for _ in range(2):
        assert not await select_model(deps, store.me.tenant)
    assert admin_rows(store.admin_url, vectors) == [(1,)]
    assert manager.wanted == [OTHER]


async def test_services_are_told_the_models_in_use_but_not_by_whom(store: Store) -> None:
    models, told = EmbeddingModelStore(store.db), list[str]()
    await models.preload_used(told.append)
    assert told == []
    for tenant in (store.me, store.other):
        await models.begin(tenant.tenant, "wide", 8, [])
        await models.switch(tenant.tenant, "wide")
    await models.preload_used(told.append)
    assert told == ["wide"]


async def test_a_service_can_set_the_model_of_its_own_tenant_only(store: Store) -> None:
    async with app_connection(store.service_url, store.me.tenant) as connection:
        assert await connection.execute("update tenant set model = 'wide'") == "UPDATE 1"
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("update tenant set name = 'another'")
    assert admin_rows(store.admin_url, MOVED) == [(store.me.tenant, "wide")]
