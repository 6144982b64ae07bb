"""An embedding model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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

from reverie.domain.errors import Misconfigured, Unavailable
from reverie.inference.meters import UNHEARD, ModelMeters
from reverie.inference.runner import MAX_CHARS, MAX_WAITING
from reverie.inference.vectors import Vectors, normalised

BATCH = 64
CALLS = 4
ATTEMPTS = 3
TIMEOUT_SECONDS = 20.0
MAX_ANSWER = 64 * 1024 * 1024


@dataclass(frozen=True)
class Endpoint:
    """Where a model answers: the address before `/embeddings`, its vectors' length, a key."""

    url: str
    dims: int
    key: str | None = field(default=None, repr=False)


def endpoint_of(url: str | None, dims: int | None, key: SecretStr | None) -> Endpoint | None:
    """The endpoint of the settings; None where they name none. Raises `Misconfigured`."""
    if url is None:
        return None
    if dims is None:
        raise Misconfigured("model_dims", "say how long the vectors of model_url are")
    return Endpoint(str(url), dims, key.get_secret_value() if key else None)


class _Again(Exception):
    """Worth another try: busy, or not reached."""


class EndpointEmbedder:
    """Sends texts in batches, several at once; tries again what is worth it; scales to length 1."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self.name = name
        self.dims = endpoint.dims
        self._endpoint = endpoint
        self._threads = ThreadPoolExecutor(CALLS, thread_name_prefix="endpoint")
        self._context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._waiting = 0
        self._meters: ModelMeters = UNHEARD

    def count_by(self, meters: ModelMeters) -> None:
        """From now on its calls are counted there."""
        self._meters = meters

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 (len(texts), dims), rows of length 1.

        Raises `Unavailable` where the endpoint does not answer, or with something else.
        """
        if not texts:
            return np.zeros((0, self.dims), dtype=np.float32)
        if self._waiting >= MAX_WAITING:
            self._meters.refused(self.name)
            raise Unavailable(f"model {self.name}", f"{self._waiting} calls are waiting for it")
        self._waiting += 1
        try:
            parts = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
            with self._meters.call(self.name, MAX_WAITING):
                return np.concatenate(await asyncio.gather(*map(self._batch, parts)))
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Ends its threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _batch(self, texts: Sequence[str]) -> Vectors:
        tries = AsyncRetrying(
            retry=retry_if_exception_type(_Again),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(0.2, max=2.0),
            reraise=True,
        )
        loop = asyncio.get_running_loop()
        try:
            async for attempt in tries:
                with attempt, self._meters.batch(self.name, len(texts)):
                    answer = await loop.run_in_executor(self._threads, self._ask, texts)
        except _Again as error:
            raise Unavailable(f"model {self.name}", str(error)) from error
        return self._vectors(answer, len(texts))

    def _ask(self, texts: Sequence[str]) -> Any:
        # An empty text is refused by most endpoints.
        body = {"model": self.name, "input": [text[:MAX_CHARS] or " " for text in texts]}
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
            ) as answer:
                return json.loads(answer.read(MAX_ANSWER))
        except HTTPError as error:
            error.close()
            told = f"the endpoint answered {error.code}"
            if error.code == HTTPStatus.TOO_MANY_REQUESTS or error.code >= 500:
                raise _Again(told) from error
            raise Unavailable(model, told) from error
        except (URLError, HTTPException, OSError) as error:
            raise _Again("the endpoint does not answer") from error
        except ValueError as error:
            raise Unavailable(model, "the endpoint answered no JSON") from error

    def _vectors(self, answer: Any, count: int) -> Vectors:
        try:
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise Unavailable(f"model {self.name}", "the endpoint answered no vectors") from error
        if vectors.shape != (count, self.dims):
            hint = f"the endpoint answered vectors of shape {vectors.shape}, not {self.dims} long"
            raise Unavailable(f"model {self.name}", f"{hint}: is model_dims right?")
        return normalised(vectors)
