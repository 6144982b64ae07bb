"""Language models over HTTP, by pydantic-ai. Imported by whoever asks one, at the first question.

To import it takes seconds and 70 MB: a process that asks no model must not pay that.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator

import httpx2
import truststore
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
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

from reverie.inference.asking import Again, LanguageEndpoint, Shape, Spent, Unanswered

MAX_ANSWER = 4 * 1024 * 1024
"""Bytes of an answer; a longer one is no answer."""

NO_KEY = "none"


class Wire:
    """One endpoint and its connections. It tries nothing again."""

    def __init__(self, endpoint: LanguageEndpoint) -> None:
        self._endpoint = endpoint
        self._http = httpx2.AsyncClient(
            verify=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            timeout=endpoint.seconds,
            event_hooks={"response": [_bound]},
        )
        self._model = _model(endpoint, self._http)

    async def ask(
        self, instructions: str, text: str, shape: type[Shape], name: str, spent: Spent
    ) -> Shape:
        """One answer of a shape; one that has it not is sent back once. Raises `Unanswered`."""
        output = _output(self._endpoint, shape, name)
        agent: Agent[object, Shape] = Agent(
            self._model, output_type=output, instructions=instructions, retries=1
        )
        settings = ModelSettings(max_tokens=self._endpoint.answer_tokens, temperature=0.0)
        usage = RunUsage()
        try:
            async with asyncio.timeout(self._endpoint.seconds):
                return (await agent.run(text, usage=usage, model_settings=settings)).output
        except TimeoutError as error:
            raise Again("it took too long") from error
        except (AgentRunError, httpx2.HTTPError, ValueError) as error:
            raise _unanswered(error) from error
        finally:
            spent.requests, spent.sent = usage.requests, usage.input_tokens
            spent.received = usage.output_tokens

    async def close(self) -> None:
        """Ends its connections."""
        await self._http.aclose()


def _model(endpoint: LanguageEndpoint, http: httpx2.AsyncClient) -> Model:
    return (
        _anthropic(endpoint, http) if endpoint.provider == "anthropic" else _openai(endpoint, http)
    )


def _anthropic(endpoint: LanguageEndpoint, http: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    key = endpoint.key or NO_KEY
    client = AsyncAnthropic(base_url=endpoint.url, api_key=key, max_retries=0, http_client=http)
    return AnthropicModel(endpoint.model, provider=AnthropicProvider(anthropic_client=client))


def _openai(endpoint: LanguageEndpoint, http: httpx2.AsyncClient) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    key = endpoint.key or NO_KEY
    client = AsyncOpenAI(base_url=endpoint.url, api_key=key, max_retries=0, http_client=http)
    provider = OpenAICompatibleProvider("llm", openai_client=client)
    return OpenAIChatModel(endpoint.model, provider=provider)


def _output(endpoint: LanguageEndpoint, shape: type[Shape], name: str) -> OutputSpec[Shape]:
    match endpoint.form:
        case "schema":
            return NativeOutput(shape, name=name)
        case "text":
            return PromptedOutput(shape, name=name)
        case "tool":
            return ToolOutput(shape, name=name)


def _unanswered(error: Exception) -> Unanswered:
    """The reason, in words that quote nothing of what was sent or answered."""
    if isinstance(error, ModelAuthenticationError | ModelQuotaExceededError):
        return Unanswered("the key or the account is refused")
    if isinstance(error, ModelHTTPError):
        code = error.status_code
        told = f"the endpoint answered {code}"
        again = code in {408, 409, 429} or code >= 500
        return Again(told, error.retry_after) if again else Unanswered(told)
    if isinstance(error, ModelConnectionError):
        return Again("the endpoint does not answer")
    if isinstance(error, ModelAPIError):
        return Again("the endpoint failed")
    if isinstance(error, UnexpectedModelBehavior):
        return Unanswered("its answer has not the shape asked for")
    if isinstance(error, httpx2.HTTPError):
        return Again("the endpoint does not answer")
    return Unanswered("its answer cannot be read")


async def _bound(response: httpx2.Response) -> None:
    """Lets no more be read of an answer than `MAX_ANSWER`."""
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Limited(response.stream)


class _Limited(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for part in self._stream:
            read += len(part)
            if read > MAX_ANSWER:
                raise httpx2.RemoteProtocolError("the answer is too long")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
