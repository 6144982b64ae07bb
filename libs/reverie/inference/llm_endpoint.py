"""Language model endpoints: configuration, errors, budget interface, usage counts and a probe."""

from __future__ import annotations

import ssl
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Literal, Protocol, TypeVar
from urllib.error import HTTPError

import truststore
from pydantic import BaseModel, SecretStr

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Misconfigured

LanguageProvider = Literal["none", "openai", "anthropic"]
OutputMode = Literal["tool", "schema", "text"]
OutputT = TypeVar("OutputT", bound=BaseModel)

DEFAULT_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}


@dataclass(frozen=True)
class LanguageEndpoint:
    """Address and call parameters of a language model.

    `output_mode`: the output is a tool call, follows a JSON schema, or is JSON in the text.
    `timeout`: seconds for one call. `attempts`: the number of calls if the first fails or is
    rate-limited. `retry_delay`: the maximum seconds before the second call; longer before the next
    ones.
    """

    provider: LanguageProvider
    model: str
    url: str
    key: str | None = field(default=None, repr=False)
    output_mode: OutputMode = "tool"
    timeout: float = 60.0
    attempts: int = 3
    max_output_tokens: int = 4_000
    retry_delay: float = 0.5


class LanguageSettings(Protocol):
    """The settings of a language model."""

    @property
    def llm_provider(self) -> LanguageProvider: ...
    @property
    def llm_url(self) -> str | None: ...
    @property
    def llm_key(self) -> SecretStr | None: ...
    @property
    def llm_model(self) -> str: ...
    @property
    def llm_output_mode(self) -> OutputMode: ...
    @property
    def llm_timeout(self) -> float: ...


def build_language_endpoint(settings: LanguageSettings) -> LanguageEndpoint | None:
    """Returns the endpoint of the settings; None if they name no provider.

    Raises `Misconfigured`.
    """
    provider, model = settings.llm_provider, settings.llm_model.strip()
    if provider == "none":
        return None
    if not model:
        raise Misconfigured("llm_model", "say which model of llm_provider is to be asked")
    url = (settings.llm_url or DEFAULT_URLS[provider]).rstrip("/")
    key = settings.llm_key.get_secret_value() if settings.llm_key else None
    output_mode, timeout = settings.llm_output_mode, settings.llm_timeout
    return LanguageEndpoint(provider, model, url, key, output_mode, timeout)


class LanguageModelError(Exception):
    """The model returned no usable output; the text is a reason without any content."""


class RetryableLanguageModelError(LanguageModelError):
    """A failed call that can be retried, after `retry_after` seconds if the endpoint set them."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class LanguageCallRejected(LanguageModelError):
    """The budget is spent, or the circuit breaker is open: nothing was sent."""


class LanguageBudget(Protocol):
    """Counts the calls of each tenant in a day."""

    async def reserve_call(self, tenant: int, principal: Principal | None) -> bool:
        """Whether one more call fits the day's budget. The call is counted even if it fails."""
        ...

    async def record_usage(
        self,
        tenant: int,
        principal: Principal | None,
        calls: int,
        failed: int,
        input_tokens: int,
        output_tokens: int,
    ) -> None:
        """Counts further calls, those that failed, and tokens sent and received."""
        ...


@dataclass
class CallUsage:
    """The cost of one question: requests sent, tokens sent and received."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass
class UsageTally:
    """The usage of one task: calls, failed calls, tokens, and why it fell back to rules.

    `principal`: the holder of the calling key, whose own budget counts too; None for background
    work.
    """

    principal: Principal | None = None
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    degraded_reason: str | None = None

    def add(self, calls: int, failed: int, call_usage: CallUsage) -> None:
        """Adds what one question cost."""
        self.calls += calls
        self.failed += failed
        self.input_tokens += call_usage.input_tokens
        self.output_tokens += call_usage.output_tokens

    @property
    def total_tokens(self) -> int:
        """Tokens sent and received."""
        return self.input_tokens + self.output_tokens


PROBE_TIMEOUT = 5.0


def find_endpoint_problem(endpoint: LanguageEndpoint) -> str | None:
    """Returns the problem of an endpoint, or None if it responds. Requests its list of models."""
    path = "/v1/models" if endpoint.provider == "anthropic" else "/models"
    request = urllib.request.Request(  # noqa: S310 (the setting admits http and https only)
        endpoint.url + path, headers=_probe_headers(endpoint)
    )
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        with urllib.request.urlopen(request, timeout=PROBE_TIMEOUT, context=context):  # noqa: S310
            return None
    except HTTPError as error:
        error.close()
        if error.code in {401, 403}:
            return f"refuses the key ({error.code})"
        # Not every compatible endpoint lists its models.
        return None if error.code in {404, 405, 501} else f"answers {error.code}"
    except (OSError, HTTPException) as error:
        return f"does not answer ({getattr(error, 'reason', None) or type(error).__name__})"


def _probe_headers(endpoint: LanguageEndpoint) -> dict[str, str]:
    if endpoint.provider == "anthropic":
        return {"x-api-key": endpoint.key or "", "anthropic-version": "2023-06-01"}
    return {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
