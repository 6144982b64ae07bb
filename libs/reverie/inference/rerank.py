"""A second look at the best hits: a cross-encoder behind an endpoint, by its usual protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import aiohttp
from pydantic import BaseModel, TypeAdapter

from reverie.domain.errors import Unavailable

MAX_CHARS = 4_000
"""Of each text that is sent."""


class Reranker(Protocol):
    """Judges texts against a question."""

    async def order(self, query: str, texts: Sequence[str]) -> list[int]:
        """The places of all texts, the most relevant first. Raises `Unavailable`."""
        ...


class _Judged(BaseModel):
    index: int
    relevance_score: float


_RESULTS = TypeAdapter(list[_Judged])


class EndpointReranker:
    """`POST {model, query, documents}` that answers `{results: [{index, relevance_score}]}`.

    So speak Cohere, Jina, Voyage, and the servers that run a cross-encoder locally (vLLM, TEI's
    proxies, llama.cpp). The caller sets the deadline.
    """

    def __init__(self, url: str, model: str, key: str | None) -> None:
        self._url, self._model = url, model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http: aiohttp.ClientSession | None = None

    async def order(self, query: str, texts: Sequence[str]) -> list[int]:
        """As the port says; ties go to the earlier place."""
        body = {
            "model": self._model,
            "query": query[:MAX_CHARS],
            "documents": [text[:MAX_CHARS] for text in texts],
            "top_n": len(texts),
        }
        scores = {one.index: one.relevance_score for one in await self._judged(body)}
        if scores.keys() != set(range(len(texts))):
            raise Unavailable("the reranker", "it did not judge every text: check rerank_url")
        return sorted(scores, key=lambda place: (-scores[place], place))

    async def _judged(self, body: dict[str, object]) -> list[_Judged]:
        try:
            async with self._session().post(self._url, json=body, headers=self._headers) as answer:
                answer.raise_for_status()
                return _RESULTS.validate_python((await answer.json(content_type=None))["results"])
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
