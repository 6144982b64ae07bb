"""Embedding endpoints, moving a tenant to another model, and `GET /v1/models`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from pydantic import SecretStr

from reverie.cli.operate.reindex import reembed_tenants
from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.inference import embedding_endpoint
from reverie.inference.embedder import OnnxEmbedder
from reverie.inference.embedding_endpoint import (
    BATCH_SIZE,
    EmbeddingEndpoint,
    EndpointEmbedder,
    build_embedding_endpoint,
)
from reverie.inference.model_catalogue import BGE_SMALL, SPARSE_MODEL
from reverie.inference.model_metrics import ModelMetrics
from reverie.runtime.settings.settings import Settings
from reverie.store.platform.api_keys import list_tenants
from reverie.store.search.embedding_models import ModelMigration, build_table_name
from reverie.testing.models import FakeEmbedder, model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Stack, eventually, running_stack
from tests.support.store_setup import admin_rows

KEY = "sk-" + "not-to-be-told-0123456789"


async def test_the_models_are_listed_with_their_state_and_without_secrets(
    database: DatabaseUrls, nats_url: str, tmp_path: Path
) -> None:
    language = {
        "llm_provider": "openai",
        "llm_model": "large",
        "llm_url": f"https://user:{KEY}@llm.example/v1",
        "llm_key": SecretStr(KEY),
        "query_expansion_timeout": 0.2,
        "rerank_url": f"https://rerank.example/?key={KEY}",
        "rerank_model": "order",
    }
    async with running_stack(database, nats_url, model_home(), **language) as stack:
        await stack.post("/v1/remember", {"content": "Lamps are lit at dusk"})
        moving = ModelMigration(database.admin_url)
        await moving.create_vector_table("wide", 8)
        await moving.begin(1, "wide", 8, [])

        async def list_models() -> dict[str, Any] | None:
            found = await stack.get("/v1/models")
            by_name = {one["name"]: one for one in found["models"]}
            return by_name if by_name["wide"]["chunks"] else None

        models = await eventually(list_models)
        assert models is not None
        active = models["bge-small-en-v1.5"]
        assert (active["role"], active["state"], active["active"]) == ("embedding", "ready", True)
        assert (active["dims"], active["max_tokens"], active["location"]) == (384, 512, "local")
        wide = models["wide"]
        assert (wide["active"], wide["state"], wide["dims"]) == (False, "missing", 8)
        assert (wide["embedded"], wide["chunks"]) == (0, 1)
        assert models.get(SPARSE_MODEL, {}).get("role", "sparse") == "sparse"
        assert models["large"]["used_for"] == ["dream", "recall"]
        assert (models["order"]["role"], models["order"]["location"]) == ("reranker", "endpoint")
        assert KEY not in json.dumps(models)
        stranger = stack.key_of(tenant="strangers")
        theirs = await stack.get("/v1/models", key=stranger)
        assert "wide" not in json.dumps(theirs)


MODEL, DIMS = "wide-embedder", 3072


@dataclass
class Site:
    """A server of embeddings: what it was asked, and the statuses it gives before it answers."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    down: bool = False
    turned: bool = False


class _Handler(BaseHTTPRequestHandler):
    site: Site

    def do_POST(self) -> None:
        site = self.site
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        site.asked.append(body)
        site.keys.append(self.headers.get("Authorization"))
        status = 503 if site.down else (site.statuses.pop(0) if site.statuses else 200)
        self.send_response(status)
        self.end_headers()
        if status == 200:
            usage = {"prompt_tokens": sum(len(text.split()) for text in body["input"])}
            answer = {"data": self._rows(body["input"]), "usage": usage}
            self.wfile.write(json.dumps(answer).encode())

    def _rows(self, texts: list[str]) -> list[dict[str, Any]]:
        fake, rows = FakeEmbedder(dims=DIMS), []
        for at, text in enumerate(texts):
            vector = np.zeros((1, DIMS), dtype=np.float32)
            fake._fill(vector[0], text)
            # Not of length 1, and not in order, as some endpoints answer.
            values = vector[0][::-1] if self.site.turned else vector[0]
            rows.append({"index": at, "embedding": (values * 3).tolist()})
        return rows[::-1]

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    handler = type("Handler", (_Handler,), {"site": made})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield made
        server.shutdown()


@pytest.fixture
def embedder(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[EndpointEmbedder]:
    monkeypatch.setattr(embedding_endpoint, "MAX_ATTEMPTS", 2)
    made = EndpointEmbedder(MODEL, EmbeddingEndpoint(site.url, DIMS, "k3y"))
    yield made
    made.close()


async def test_texts_are_sent_in_batches_and_vectors_returned_in_order_at_length_one(
    embedder: EndpointEmbedder, site: Site
) -> None:
    site.statuses = [429]
    texts = [f"text number {n}" for n in range(BATCH_SIZE + 1)]
    vectors = await embedder.embed(texts)
    assert vectors == pytest.approx(await FakeEmbedder(dims=DIMS).embed(texts), abs=1e-5)
    assert sorted(len(one["input"]) for one in site.asked[-2:]) == [1, BATCH_SIZE]
    assert len(site.asked) == 3
    assert set(site.keys) == {"Bearer k3y"}
    assert "k3y" not in repr(embedder._endpoint)


async def test_the_tokens_that_an_endpoint_read_are_counted(embedder: EndpointEmbedder) -> None:
    registry = CollectorRegistry()
    embedder.set_metrics(ModelMetrics(registry))
    await embedder.embed([f"text number {n}" for n in range(BATCH_SIZE + 1)])
    counted = registry.get_sample_value("reverie_model_tokens_total", {"model": MODEL})
    assert counted == 3 * (BATCH_SIZE + 1)


async def test_a_failing_endpoint_is_unavailable_with_its_reason(
    embedder: EndpointEmbedder, site: Site
) -> None:
    site.statuses = [401]
    with pytest.raises(Unavailable, match="401"):
        await embedder.embed(["a"])
    assert len(site.asked) == 1
    site.down = True
    with pytest.raises(Unavailable, match="503"):
        await embedder.embed(["a"])
    assert len(site.asked) == 3
    narrow = EndpointEmbedder(MODEL, EmbeddingEndpoint("http://127.0.0.1:1", 7))
    with pytest.raises(Unavailable, match="does not answer"):
        await narrow.embed(["a"])
    site.down = False
    narrow = EndpointEmbedder(MODEL, EmbeddingEndpoint(site.url, 7))
    with pytest.raises(Unavailable, match="embedding_dims"):
        await narrow.embed(["a"])
    with pytest.raises(Misconfigured, match="embedding_dims"):
        build_embedding_endpoint(site.url, None, None)


async def test_a_custom_folder_is_a_model(tmp_path: Path) -> None:
    there = model_home(BGE_SMALL.name) / "models" / BGE_SMALL.name
    with pytest.raises(Misconfigured, match=r"no model\.onnx"):
        OnnxEmbedder.from_folder("own", tmp_path)
    copyfile(there / BGE_SMALL.graph_file, tmp_path / "model.onnx")
    copyfile(there / "tokenizer.json", tmp_path / "tokenizer.json")
    (tmp_path / "profile.json").write_text('{"pooling": "first"}')
    with pytest.raises(Misconfigured, match="pooling"):
        OnnxEmbedder.from_folder("own", tmp_path)
    (tmp_path / "profile.json").write_text('{"pooling": "cls"}')
    own, known = OnnxEmbedder.from_folder("own", tmp_path), OnnxEmbedder.from_spec(BGE_SMALL, there)
    assert own.dims == BGE_SMALL.dims
    assert await own.embed(["the outbox"]) == pytest.approx(await known.embed(["the outbox"]))
    own.close()
    known.close()


async def _remember(stack: Stack, *texts: str) -> list[str]:
    items = [{"content": text, "scope": "project/shop"} for text in texts]
    answers = (await stack.post("/v1/remember/batch", {"items": items}))["items"]
    behind = "select count(*) from memory where enriched_version < version"

    async def enriched() -> bool:
        return admin_rows(stack.admin_url, behind) == [(0,)]

    await eventually(enriched)
    return [one["id"] for one in answers]


async def _recall(stack: Stack) -> Any:
    return await stack.post("/v1/recall", {"query": "pool leak", "scopes": ["project/shop"]})


async def test_a_tenant_switches_its_model_and_recall_works_throughout(
    database: DatabaseUrls, nats_url: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_endpoint, "MAX_ATTEMPTS", 1)
    other: dict[str, Any] = {
        "embedding_model": MODEL,
        "embedding_url": site.url,
        "embedding_dims": DIMS,
    }
    rows = f"select count(*) from {build_table_name(MODEL)}"
    async with running_stack(database, nats_url, model_home()) as stack:
        [first] = await _remember(stack, "The connection pool leaks at midnight")
    async with running_stack(database, nats_url, model_home(), **other) as stack:

        async def by_the_first_model() -> bool:
            return not (await _recall(stack))["degraded"]

        # It is loaded when it is first asked for, since the services are set to the other.
        await eventually(by_the_first_model)
        settings = Settings(home=model_home(), database_url=SecretStr(database.admin_url), **other)
        tenants = [one for one in list_tenants(database.admin_url) if one[1] == "default"]
        assert await reembed_tenants(settings, database.admin_url, tenants) == {"default": 1}
        assert await reembed_tenants(settings, database.admin_url, tenants) == {"default": 0}
        asked = len(site.asked)
        [second] = await _remember(stack, "The pool of threads leaks too")
        assert admin_rows(database.admin_url, rows) == [(2,)]

        async def by_the_other() -> bool:
            found = await _recall(stack)
            assert found["degraded"] == []
            return len(site.asked) > asked + 1 and len(found["memories"]) == 2

        await eventually(by_the_other)
        assert {one["id"] for one in (await _recall(stack))["memories"]} == {first, second}
        await stack.call("DELETE", f"/v1/memories/{second}", headers={"If-Match": "*"})
        assert admin_rows(database.admin_url, rows) == [(1,)]
    async with running_stack(database, nats_url, model_home(), **other) as stack:
        site.down = True
        assert (await _recall(stack))["degraded"] == ["meaning"]
        site.down, site.turned = False, True
        found = await _recall(stack)
        assert (found["degraded"], found["memories"][0]["id"]) == (["meaning"], first)
