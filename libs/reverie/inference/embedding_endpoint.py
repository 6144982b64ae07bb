"""Embeds texts by an OpenAI-compatible HTTP endpoint."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError

import numpy as np
import truststore
from pydantic import SecretStr
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.inference.embedder import Vectors, normalize_rows
from reverie.inference.model_metrics import UNREGISTERED_METRICS, ModelMetrics
from reverie.inference.onnx_runner import MAX_CHARS, MAX_WAITING_CALLS

BATCH_SIZE = 64
MAX_CONCURRENT_CALLS = 4
MAX_ATTEMPTS = 3
TIMEOUT_SECONDS = 20.0
MAX_RESPONSE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class EmbeddingEndpoint:
    """An embedding endpoint: the address before `/embeddings`, the length of its vectors, a key.

    `model`: the model to name there; None: the name under which the endpoint is known here.
    """

    url: str
    dims: int
    key: str | None = field(default=None, repr=False)
    model: str | None = None


def build_embedding_endpoint(
    url: str | None, dims: int | None, key: SecretStr | None
) -> EmbeddingEndpoint | None:
    """Returns the endpoint of the settings; None if not configured. Raises `Misconfigured`."""
    if url is None:
        return None
    if dims is None:
        raise Misconfigured("embedding_dims", "say how long the vectors of embedding_url are")
    return EmbeddingEndpoint(str(url), dims, key.get_secret_value() if key else None)


class _RetryableEndpointError(Exception):
    """A temporary error: the endpoint is busy or was not reached."""


class EndpointEmbedder:
    """Sends batches concurrently, retries temporary errors, normalizes vectors."""

    def __init__(self, name: str, endpoint: EmbeddingEndpoint) -> None:
        self.name = name
        self.dims = endpoint.dims
        self._endpoint = endpoint
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT_CALLS, thread_name_prefix="endpoint")
        self._context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._waiting = 0
        self._metrics: ModelMetrics = UNREGISTERED_METRICS

    def set_metrics(self, metrics: ModelMetrics) -> None:
        """From now on its calls are counted there."""
        self._metrics = metrics

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns float32 (len(texts), dims), rows of length 1.

        Raises `Unavailable` if the endpoint does not respond or the response is invalid.
        """
        if not texts:
            return np.zeros((0, self.dims), dtype=np.float32)
        if self._waiting >= MAX_WAITING_CALLS:
            self._metrics.count_refused(self.name)
            raise Unavailable(f"model {self.name}", f"{self._waiting} calls are waiting for it")
        self._waiting += 1
        try:
            batches = [
                texts[start : start + BATCH_SIZE] for start in range(0, len(texts), BATCH_SIZE)
            ]
            with self._metrics.track_call(self.name, MAX_WAITING_CALLS):
                return np.concatenate(await asyncio.gather(*map(self._embed_batch, batches)))
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Ends its threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _embed_batch(self, texts: Sequence[str]) -> Vectors:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_RetryableEndpointError),
            stop=stop_after_attempt(MAX_ATTEMPTS),
            wait=wait_random_exponential(0.2, max=2.0),
            reraise=True,
        )
        loop = asyncio.get_running_loop()
        try:
            async for attempt in retrying:
                with attempt, self._metrics.track_batch(self.name, len(texts)):
                    response = await loop.run_in_executor(self._threads, self._post_texts, texts)
        except _RetryableEndpointError as error:
            raise Unavailable(f"model {self.name}", str(error)) from error
        vectors = self._parse_vectors(response, len(texts))
        with suppress(KeyError, TypeError, ValueError):  # not every endpoint says it
            self._metrics.count_tokens(self.name, int(response["usage"]["prompt_tokens"]))
        return vectors

    def _post_texts(self, texts: Sequence[str]) -> Any:
        # An empty text is refused by most endpoints.
        body = {
            "model": self._endpoint.model or self.name,
            "input": [text[:MAX_CHARS] or " " for text in texts],
        }
        headers = {"Content-Type": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        request = urllib.request.Request(  # noqa: S310 (the setting admits http and https only)
            f"{self._endpoint.url.rstrip('/')}/embeddings", json.dumps(body).encode(), headers
        )
        model = f"model {self.name}"
        try:
            with urllib.request.urlopen(  # noqa: S310
                request, timeout=TIMEOUT_SECONDS, context=self._context
            ) as response:
                return json.loads(response.read(MAX_RESPONSE_BYTES))
        except HTTPError as error:
            error.close()
            reason = f"the endpoint answered {error.code}"
            if error.code == HTTPStatus.TOO_MANY_REQUESTS or error.code >= 500:
                raise _RetryableEndpointError(reason) from error
            raise Unavailable(model, reason) from error
        except (URLError, HTTPException, OSError) as error:
            raise _RetryableEndpointError("the endpoint does not answer") from error
        except ValueError as error:
            raise Unavailable(model, "the endpoint answered no JSON") from error

    def _parse_vectors(self, response: Any, count: int) -> Vectors:
        try:
            rows = sorted(response["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise Unavailable(f"model {self.name}", "the endpoint answered no vectors") from error
        if vectors.shape != (count, self.dims):
            hint = f"the endpoint answered vectors of shape {vectors.shape}, not {self.dims} long"
            raise Unavailable(f"model {self.name}", f"{hint}: is embedding_dims right?")
        return normalize_rows(vectors)
