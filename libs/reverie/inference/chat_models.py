"""Chat models of the engine: endpoints by name, and connections that try again by themselves."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx2
import truststore
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_ai.models import Model

from reverie.domain.core.errors import Misconfigured
from reverie.inference.llm_endpoint import DEFAULT_URLS, LanguageEndpoint
from reverie.inference.llm_transport import create_model, limit_response

_ATTEMPTS = 3
_BASE_DELAY = 1.0
_MAX_DELAY = 60.0
_MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""Of one streamed answer: a model that never stops is cut off. A token takes about 250 bytes."""
_OLLAMA_URL = "http://127.0.0.1:11434/v1"


class ChatEndpoint(BaseModel):
    """A model that agents name.

    `vault`: the key of the tenant's vault that holds its API key. `sees`: whether it takes images.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: Literal["openai", "anthropic", "ollama"]
    model: str
    url: str | None = None
    key: str | None = None
    vault: str | None = None
    max_output_tokens: int = 4096
    sees: bool = True

    def to_language_endpoint(self, key: str | None, timeout: float) -> LanguageEndpoint:
        """The address and the key of the model."""
        provider: Literal["openai", "anthropic"]
        provider = "anthropic" if self.provider == "anthropic" else "openai"
        default = _OLLAMA_URL if self.provider == "ollama" else DEFAULT_URLS[provider]
        url = (self.url or default).rstrip("/")
        return LanguageEndpoint(provider, self.model, url, key or self.key, timeout=timeout)


def parse_chat_endpoints(
    text: str | None, default: LanguageEndpoint | None
) -> dict[str, ChatEndpoint]:
    """The models of the setting; without it the one of `llm_provider`, as `default`.

    Raises `Misconfigured`.
    """
    if text is None:
        if default is None:
            return {}
        fields = {name: getattr(default, name) for name in ("provider", "model", "url", "key")}
        return {"default": ChatEndpoint(**fields)}
    try:
        entries = json.loads(text)
        return {str(name): ChatEndpoint(**entry) for name, entry in entries.items()}
    except (ValueError, TypeError, AttributeError, ValidationError):
        reason = 'must be JSON as {"default": {"provider": "openai", "model": "..."}}'
        raise Misconfigured("engine_models", reason) from None


class ChatModels:
    """Makes models that share connections."""

    def __init__(self, endpoints: Mapping[str, ChatEndpoint], timeout: float) -> None:
        self.endpoints = endpoints
        self._timeout = timeout
        self._http = httpx2.AsyncClient(
            transport=RetryingTransport(
                httpx2.AsyncHTTPTransport(
                    verify=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                    limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
                )
            ),
            timeout=timeout,
            event_hooks={"response": [_limit_answer]},
        )

    def create(self, name: str, key: str | None = None) -> Model:
        """The model of a name; `key` replaces the key of its endpoint."""
        endpoint = self.endpoints[name].to_language_endpoint(key, self._timeout)
        return create_model(endpoint, self._http)

    async def close(self) -> None:
        """Ends the connections."""
        await self._http.aclose()


@asynccontextmanager
async def open_chat_models(
    endpoints: Mapping[str, ChatEndpoint], idle_timeout: float
) -> AsyncIterator[ChatModels]:
    """Opens the models."""
    models = ChatModels(endpoints, idle_timeout)
    try:
        yield models
    finally:
        await models.close()


class RetryingTransport(httpx2.AsyncBaseTransport):
    """Sends a request up to three times: after `Retry-After`, else after 1 s, then 2 s, jittered.

    Only an answer that has not begun is asked for again, so no text comes twice.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                response = await self._inner.handle_async_request(request)
            except httpx2.TransportError:
                if attempt == _ATTEMPTS:
                    raise
                await asyncio.sleep(_delay(attempt, None))
                continue
            if attempt == _ATTEMPTS or not _is_retryable(response):
                return response
            await response.aclose()
            await asyncio.sleep(_delay(attempt, response.headers.get("Retry-After")))
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _limit_answer(response: httpx2.Response) -> None:
    await limit_response(response, _MAX_ANSWER_BYTES)


def _is_retryable(response: httpx2.Response) -> bool:
    return response.status_code in {408, 409, 429} or response.status_code >= 500


def _delay(attempt: int, retry_after: str | None) -> float:
    """The seconds to wait: those that the answer names, at most a minute, or ever longer ones."""
    if retry_after and retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after), _MAX_DELAY)
    with suppress(ValueError, TypeError):
        seconds = (parsedate_to_datetime(retry_after or "") - datetime.now(UTC)).total_seconds()
        return min(max(seconds, 0.0), _MAX_DELAY)
    return float(_BASE_DELAY * 2 ** (attempt - 1) * random.uniform(0.5, 1.0))  # noqa: S311
