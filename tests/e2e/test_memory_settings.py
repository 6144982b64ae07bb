"""Settings of memory, as who sets them meets them: each changes what the system does."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from reverie.embedded.supervision.service_layout import ServerUrls, build_environment
from reverie.runtime.settings.loading import load_settings
from reverie.runtime.settings.settings import Settings
from reverie.testing.servers import DatabaseUrls
from reverie_services.startup import build_embedding_endpoints
from tests.support.stack import Stack, running_stack
from tests.support.tables import run

SCOPE = "project/shop"


@pytest.fixture
async def plain(database: DatabaseUrls, nats_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    """A system whose home has no model and may fetch none."""
    more: dict[str, Any] = {
        "embeddings_enabled": False,
        "model_download": False,
        "decay_enabled": False,
        "stale_marks": False,
        "recall_limit": 3,
        "tenant_memories": 8,
    }
    async with running_stack(database, nats_url, tmp_path, **more) as made:
        yield made


async def _remember(stack: Stack, content: str, **fields: Any) -> str:
    body = {"content": content, "scope": SCOPE, "kind": "decision", **fields}
    return str((await stack.post("/v1/remember", body))["id"])


async def test_without_models_decay_or_marks_memory_works_by_words_and_keeps_all_it_has(
    plain: Stack,
) -> None:
    old = await _remember(plain, "Prices are cents in src/cart/price.py", confidence=0.9)
    for number in range(5):
        await _remember(plain, f"Prices of tariff {number} are rounded down", confidence=0.05)
    # Nothing waits for a vector that will never be.
    await plain.settled()

    found = await plain.post("/v1/recall", {"query": "prices", "scopes": [SCOPE]})
    assert (found["search_mode"], found["degraded"]) == ("words", [])
    assert len(found["memories"]) == 3
    more = await plain.post("/v1/recall", {"query": "prices", "scopes": [SCOPE], "limit": 6})
    assert len(more["memories"]) == 6
    models = (await plain.get("/v1/models"))["models"]
    assert [model for model in models if model["role"] in {"embedding", "sparse"}] == []

    age = "update memory set created = now() - interval '900 days'"
    await to_thread(run, plain.admin_url, age)
    assert (await plain.get(f"/v1/memories/{old}"))["confidence"] == 0.9
    assert (await plain.post("/v1/maintenance/run", {}))["archived"] == 0

    commit = {"sha": "4e1d9c2a", "subject": "Move prices", "committed_at": "2027-01-01T00:00:00Z"}
    change = {"project": "shop", "branch": "main", "after": "4e1d9c2a", "commits": [commit]}
    files = [{"path": "src/cart/price.py", "status": "deleted"}]
    await plain.post("/v1/git/changes", change | {"files": files})
    await plain.settled()
    assert (await plain.get("/v1/stale?project=shop"))["items"] == []


async def test_a_full_tenant_refuses_new_memories_and_still_takes_corrections(
    plain: Stack,
) -> None:
    kept = await _remember(plain, "The port is 3456", key="port")
    for number in range(7):
        await _remember(plain, f"Fact {number} of the eight that fit")
    refused = await plain.call(
        "POST", "/v1/remember", {"content": "One too many", "scope": SCOPE, "kind": "bug"}
    )
    assert (refused.status, refused.body["code"]) == (409, "full")
    assert "(8)" in refused.body["detail"]
    same = {"content": "The port is 3456", "key": "port", "scope": SCOPE}
    batch = {"items": [{"content": "Two too many", "scope": SCOPE}, same]}
    items = (await plain.post("/v1/remember/batch", batch))["items"]
    assert [item.get("code") or item["status"] for item in items] == ["full", "duplicate"]
    line = {"content": "The port is 4567", "key": "port", "supersede_reason": "it moved"}
    assert await _remember(plain, **line) != kept

    # What is out of the way makes room, and a tenant may keep itself smaller.
    shown = (await plain.get("/v1/admin/settings"))["limits"]
    assert shown["used"]["memories"] == 8
    limits = {"limits": {"memories": 2}}
    assert (await plain.call("PATCH", "/v1/admin/settings", limits)).status == 200
    [first, *_] = (await plain.get("/v1/memories?key=port&status=active"))["items"]
    await plain.call("POST", f"/v1/memories/{first['id']}/archive", {})
    again = await plain.call("POST", "/v1/remember", {"content": "Still too many", "scope": SCOPE})
    assert "(2)" in again.body["detail"]
    await plain.call("PATCH", "/v1/admin/settings", {"limits": None})
    await _remember(plain, "Now it fits again")


def test_profiles_name_endpoints_and_reach_every_service_with_their_keys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = '{"large": {"url": "https://host/v1", "dims": 1536, "model": "m-3", "key": "s3cret"}}'
    monkeypatch.setenv("REVERIE_EMBEDDING_PROFILES", text)
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path))
    settings = load_settings()
    assert "s3cret" not in repr(settings)
    servers = ServerUrls("postgresql://x", None, "nats://x")
    variables = build_environment("all", settings, {}, servers)
    monkeypatch.setenv("REVERIE_EMBEDDING_PROFILES", variables["REVERIE_EMBEDDING_PROFILES"])
    endpoint = build_embedding_endpoints(load_settings())["large"]
    assert (endpoint.url, endpoint.dims) == ("https://host/v1", 1536)
    assert (endpoint.model, endpoint.key) == ("m-3", "s3cret")


def test_the_configured_endpoint_stands_beside_the_profiles() -> None:
    profile = {"url": "https://other/v1", "dims": 8}
    settings = Settings(
        embedding_model="mine",
        embedding_url="https://host/v1",
        embedding_dims=4,
        embedding_key=SecretStr("k"),
        embedding_profiles={"other": profile},
    )
    endpoints = build_embedding_endpoints(settings)
    assert {name: made.dims for name, made in endpoints.items()} == {"mine": 4, "other": 8}
