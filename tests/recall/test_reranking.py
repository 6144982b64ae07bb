"""Reranking by an endpoint or a local cross-encoder, and what happens when it is late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copyfile
from typing import Any

import onnx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from onnx import TensorProto, helper

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.inference.model_catalogue import BGE_SMALL
from reverie.inference.reranker import EndpointReranker, LocalReranker
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import running_stack

TEXTS = ("The pool holds ten connections", "The pool was drained in May", "The pool is in Berlin")


class Judge:
    """An endpoint that likes the texts with a word best; it can be told to hang or to fail."""

    def __init__(self) -> None:
        self.likes = "Berlin"
        self.hang = False
        self.answer: Any = None
        self.keys: list[str | None] = []

    async def rerank(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers.get("Authorization"))
        body = await request.json()
        if self.hang:
            await asyncio.Event().wait()
        results = [
            {"index": place, "relevance_score": float(self.likes in text)}
            for place, text in enumerate(body["documents"])
        ]
        return web.json_response(self.answer or {"results": results})


@asynccontextmanager
async def endpoint() -> AsyncIterator[tuple[Judge, str]]:
    judge = Judge()
    app = web.Application()
    app.router.add_post("/v1/rerank", judge.rerank)
    async with TestServer(app, shutdown_timeout=0.1) as server:
        yield judge, str(server.make_url("/v1/rerank"))


async def test_the_endpoint_reorders_the_first_hits_unless_it_is_late_or_wrong(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with (
        endpoint() as (judge, url),
        running_stack(
            database,
            nats_url,
            model_home(),
            rerank_url=url,
            rerank_key="rerank-key",
            rerank_timeout=5.0,
        ) as stack,
    ):
        for text in TEXTS:
            await stack.post("/v1/remember", {"content": text})
        found = await stack.post("/v1/recall", {"query": "pool"})
        assert found["memories"][0]["content"] == TEXTS[2]
        scores = [hit["score"] for hit in found["memories"]]
        assert scores == sorted(scores, reverse=True)
        assert found["degraded"] == []
        judge.likes = "May"
        found = await stack.post("/v1/recall", {"query": "pool"})
        assert found["memories"][0]["content"] == TEXTS[1]
        judge.answer = {"results": [{"index": 7, "relevance_score": 1.0}]}
        found = await stack.post("/v1/recall", {"query": "pool"})
        assert found["degraded"] == ["rerank"]
        assert len(found["memories"]) == len(TEXTS)
        assert set(judge.keys) == {"Bearer rerank-key"}
    async with (
        endpoint() as (judge, url),
        running_stack(
            database, nats_url, model_home(), rerank_url=url, rerank_timeout=0.05
        ) as stack,
    ):
        judge.hang = True
        for text in TEXTS:
            await stack.post("/v1/remember", {"content": text})
        found = await stack.post("/v1/recall", {"query": "pool"})
        assert found["degraded"] == ["rerank"]
        assert {hit["content"] for hit in found["memories"]} >= set(TEXTS)


async def test_a_missing_endpoint_is_reported_as_degraded() -> None:
    reranker = EndpointReranker("http://127.0.0.1:9/rerank", "any", None)
    with pytest.raises(Unavailable, match="rerank_url"):
        await reranker.order("question", ["text"])
    await reranker.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cross-encoder that counts the tokens a text shares with the question."""
    copyfile(
        model_home() / "models" / BGE_SMALL.name / "tokenizer.json", tmp_path / "tokenizer.json"
    )
    ids, types = "input_ids", "token_type_ids"
    said = helper.make_tensor("said", TensorProto.INT64, [1], [1])
    across = helper.make_tensor("across", TensorProto.INT64, [1], [2])
    down = helper.make_tensor("down", TensorProto.INT64, [1], [1])
    both = helper.make_tensor("both", TensorProto.INT64, [2], [1, 2])
    nodes = [
        helper.make_node("Equal", [types, "said"], ["text"]),
        helper.make_node("Not", ["text"], ["asked"]),
        helper.make_node("Unsqueeze", [ids, "across"], ["one"]),
        helper.make_node("Unsqueeze", [ids, "down"], ["other"]),
        helper.make_node("Unsqueeze", ["asked", "across"], ["from"]),
        helper.make_node("Unsqueeze", ["text", "down"], ["to"]),
        helper.make_node("Equal", ["one", "other"], ["same"]),
        helper.make_node("And", ["from", "to"], ["apart"]),
        helper.make_node("And", ["same", "apart"], ["shared"]),
        helper.make_node("Cast", ["shared"], ["counted"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["counted", "both"], ["sum"], keepdims=0),
        helper.make_node("Unsqueeze", ["sum", "down"], ["logits"]),
    ]
    shape = ["texts", "tokens"]
    graph = helper.make_graph(
        nodes,
        "shared_words",
        [helper.make_tensor_value_info(one, TensorProto.INT64, shape) for one in (ids, types)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["texts", 1])],
        [said, across, down, both],
    )
    opsets = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "model.onnx")
    return tmp_path


async def test_a_cross_encoder_in_a_folder_scores_the_question_with_each_text(
    database: DatabaseUrls, nats_url: str, folder: Path
) -> None:
    async with running_stack(
        database, nats_url, model_home(), rerank_model_dir=folder, rerank_timeout=5.0
    ) as stack:
        for text in TEXTS:
            await stack.post("/v1/remember", {"content": text})
        for query, first in (("the pool is in", TEXTS[2]), ("was pool drained in", TEXTS[1])):
            found = await stack.post("/v1/recall", {"query": query})
            assert found["memories"][0]["content"] == first
            assert found["degraded"] == []
    reranker = LocalReranker(folder)
    assert await reranker.order("the ten connections", [*reversed(TEXTS), TEXTS[0]]) == [2, 3, 0, 1]
    await reranker.close()


def test_a_folder_without_a_cross_encoder_is_named(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(Misconfigured, match="cannot be loaded"):
        LocalReranker(folder)
    (folder / "model.onnx").unlink()
    with pytest.raises(Misconfigured, match=r"rerank_model_dir.*no model.onnx"):
        LocalReranker(folder)
