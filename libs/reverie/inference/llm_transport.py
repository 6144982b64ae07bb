"""Calls a language model over HTTP with pydantic-ai. Slow to import, so imported on first use.

The import takes seconds and 70 MB, which a process that calls no language model must not pay.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator

import httpx2
import truststore
from pydantic_ai import Agent, BinaryContent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    UnexpectedModelBehavior,
)
from pydantic_ai.models import Model
from pydantic_ai.output import OutputSpec
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage

from reverie.inference.llm_endpoint import (
    CallUsage,
    LanguageEndpoint,
    LanguageModelError,
    OutputT,
    RetryableLanguageModelError,
)

MAX_RESPONSE_BYTES = 4 * 1024 * 1024
"""Maximum bytes of a response; a longer one is rejected."""

PLACEHOLDER_KEY = "none"


class LanguageModelTransport:
    """One endpoint and its connections. It tries nothing again."""

    def __init__(self, endpoint: LanguageEndpoint) -> None:
        self._endpoint = endpoint
        self._http = httpx2.AsyncClient(
            verify=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            timeout=endpoint.timeout,
            event_hooks={"response": [limit_response]},
        )
        self._model = create_model(endpoint, self._http)

    async def ask(
        self,
        instructions: str,
        text: str,
        output_type: type[OutputT],
        name: str,
        call_usage: CallUsage,
        picture: tuple[bytes, str] | None = None,
    ) -> OutputT:
        """Requests one output of the given type; retries once if the output does not match.

        Raises `LanguageModelError`.
        """
        output = _build_output_spec(self._endpoint, output_type, name)
        agent: Agent[object, OutputT] = Agent(
            self._model, output_type=output, instructions=instructions, retries=1
        )
        settings = ModelSettings(max_tokens=self._endpoint.max_output_tokens, temperature=0.0)
        usage = RunUsage()
        asked: str | list[str | BinaryContent] = text
        if picture is not None:
            data, media_type = picture
            asked = [text, BinaryContent(data=data, media_type=media_type)]
        try:
            async with asyncio.timeout(self._endpoint.timeout):
                return (await agent.run(asked, usage=usage, model_settings=settings)).output
        except TimeoutError as error:
            raise RetryableLanguageModelError("it took too long") from error
        except (AgentRunError, httpx2.HTTPError, ValueError) as error:
            raise _to_language_model_error(error) from error
        finally:
            call_usage.requests, call_usage.input_tokens = usage.requests, usage.input_tokens
            call_usage.output_tokens = usage.output_tokens

    async def close(self) -> None:
        """Ends its connections."""
        await self._http.aclose()


def create_model(endpoint: LanguageEndpoint, http: httpx2.AsyncClient) -> Model:
    """The provider's model; of the two libraries only the one it needs is imported."""
    key = endpoint.key or PLACEHOLDER_KEY
    if endpoint.provider == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        anthropic = AsyncAnthropic(
            base_url=endpoint.url, api_key=key, max_retries=0, http_client=http
        )
        provider = AnthropicProvider(anthropic_client=anthropic)
        return AnthropicModel(endpoint.model, provider=provider)
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    client = AsyncOpenAI(base_url=endpoint.url, api_key=key, max_retries=0, http_client=http)
    return OpenAIChatModel(
        endpoint.model, provider=OpenAICompatibleProvider("llm", openai_client=client)
    )


def _build_output_spec(
    endpoint: LanguageEndpoint, output_type: type[OutputT], name: str
) -> OutputSpec[OutputT]:
    match endpoint.output_mode:
        case "schema":
            return NativeOutput(output_type, name=name)
        case "text":
            return PromptedOutput(output_type, name=name)
        case "tool":
            return ToolOutput(output_type, name=name)


def _to_language_model_error(error: Exception) -> LanguageModelError:
    """The reason, in words that quote nothing of what was sent or answered."""
    if isinstance(error, ModelAuthenticationError | ModelQuotaExceededError):
        return LanguageModelError("the key or the account is refused")
    if isinstance(error, ModelHTTPError):
        code = error.status_code
        reason = f"the endpoint answered {code}"
        is_retryable = code in {408, 409, 429} or code >= 500
        return (
            RetryableLanguageModelError(reason, error.retry_after)
            if is_retryable
            else LanguageModelError(reason)
        )
    if isinstance(error, ModelConnectionError):
        return RetryableLanguageModelError("the endpoint does not answer")
    if isinstance(error, ModelAPIError):
        return RetryableLanguageModelError("the endpoint failed")
    if isinstance(error, UnexpectedModelBehavior):
        return LanguageModelError("its answer has not the shape asked for")
    if isinstance(error, httpx2.HTTPError):
        return RetryableLanguageModelError("the endpoint does not answer")
    return LanguageModelError("its answer cannot be read")


async def limit_response(response: httpx2.Response, limit: int = MAX_RESPONSE_BYTES) -> None:
    """Limits the bytes that are read from a response."""
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _LimitedStream(response.stream, limit)


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream, self._limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._stream:
            received += len(chunk)
            if received > self._limit:
                raise httpx2.RemoteProtocolError("the answer is too long")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
