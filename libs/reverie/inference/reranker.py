"""Reranks search hits with a cross-encoder, run locally or behind an HTTP endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import aiohttp
from pydantic import BaseModel, TypeAdapter

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.inference.model_metrics import ModelMetrics
from reverie.inference.onnx_runner import CUSTOM_GRAPH, OnnxRunner, load_custom_profile

MAX_TEXT_CHARS = 4_000
"""Of each text that is judged."""
MAX_QUERY_CHARS = 1_000
MAX_WAITING = 8


class Reranker(Protocol):
    """Judges texts against a question."""

    async def order(self, query: str, texts: Sequence[str]) -> list[int]:
        """The places of all texts, the most relevant first. Raises `Unavailable`."""
        ...

    async def close(self) -> None:
        """Closes open connections and releases the model."""
        ...


class LocalReranker:
    """A local cross-encoder in a folder: `model.onnx` reads a question and a text together.

    Its first output is the relevance: one number a pair, or one a class, of which the last counts.
    Raises `Misconfigured` if the folder contains no such model.
    """

    def __init__(self, folder: Path, threads: int = 1) -> None:
        profile = load_custom_profile(folder, "rerank_model_dir")
        try:
            self._runner = OnnxRunner(
                "reranker", folder / CUSTOM_GRAPH, profile.max_tokens, threads, MAX_WAITING
            )
            self._runner.load()
        except Exception as error:
            # onnxruntime and tokenizers have no error in common.
            reason = f"{folder} cannot be loaded ({type(error).__name__})"
            raise Misconfigured("rerank_model_dir", reason) from error

    def set_metrics(self, metrics: ModelMetrics) -> None:
        """From now on its calls are counted there."""
        self._runner.metrics = metrics

    async def order(self, query: str, texts: Sequence[str]) -> list[int]:
        """Implements the port; ties go to the earlier position."""
        # The model reads so many tokens of both: a long question would leave none for the texts.
        pairs = [(query[:MAX_QUERY_CHARS], text[:MAX_TEXT_CHARS]) for text in texts]
        rows = await self._runner.run(pairs)
        return _rank_by_score({index: float(row.flat[-1]) for index, row in enumerate(rows)})

    async def close(self) -> None:
        """Ends its thread."""
        self._runner.close()


class _RerankResult(BaseModel):
    index: int
    relevance_score: float


_RESULTS_ADAPTER = TypeAdapter(list[_RerankResult])


class EndpointReranker:
    """A reranker endpoint: `POST {model, query, documents}` returns `{results: [{index,
    relevance_score}]}`.

    Cohere, Jina, Voyage and local cross-encoder servers (vLLM, TEI's proxies, llama.cpp) use this
    protocol. The caller sets the deadline.
    """

    def __init__(self, url: str, model: str, key: str | None) -> None:
        self._url, self._model = url, model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http: aiohttp.ClientSession | None = None

    async def order(self, query: str, texts: Sequence[str]) -> list[int]:
        """Implements the port; ties go to the earlier position."""
        body = {
            "model": self._model,
            "query": query[:MAX_TEXT_CHARS],
            "documents": [text[:MAX_TEXT_CHARS] for text in texts],
            "top_n": len(texts),
        }
        scores = {
            result.index: result.relevance_score for result in await self._request_scores(body)
        }
        if scores.keys() != set(range(len(texts))):
            raise Unavailable("the reranker", "it did not judge every text: check rerank_url")
        return _rank_by_score(scores)

    async def _request_scores(self, body: dict[str, object]) -> list[_RerankResult]:
        try:
            async with self._session().post(
                self._url, json=body, headers=self._headers
            ) as response:
                response.raise_for_status()
                return _RESULTS_ADAPTER.validate_python(
                    (await response.json(content_type=None))["results"]
                )
        except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError) as error:
            reason = f"{type(error).__name__}: check rerank_url and rerank_key"
            raise Unavailable("the reranker", reason) from error

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession()
        return self._http

    async def close(self) -> None:
        """Ends its connections."""
        if self._http is not None:
            await self._http.close()


def _rank_by_score(scores: Mapping[int, float]) -> list[int]:
    return sorted(scores, key=lambda index: (-scores[index], index))
