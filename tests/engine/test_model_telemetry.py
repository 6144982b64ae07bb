"""Requests of models are spans and metrics by the GenAI conventions of OpenTelemetry."""

from __future__ import annotations

import re

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from reverie.runtime.observability.metrics import create_registry
from reverie.testing.chat_server import ChatAnswer
from reverie_services.engine.metrics import EngineMetrics
from tests.engine.conftest import Engine

TOKENS = re.compile(
    r'gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="llm",'
    r'gen_ai_request_model="stub",gen_ai_token_type="output"} (\d+)'
)


async def test_a_request_is_a_span_that_says_nothing_of_what_was_said() -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    metrics = EngineMetrics(create_registry(), provider)
    model = TestModel(custom_output_text="the ferryman rings it", model_name="bell-1")
    agent = Agent(model, capabilities=[metrics.instrumentation])
    await agent.run("Who rings the bell?")
    [chat] = [span for span in spans.get_finished_spans() if span.name.startswith("chat")]
    noted = dict(chat.attributes or {})
    assert noted["gen_ai.operation.name"] == "chat"
    assert noted["gen_ai.request.model"] == "bell-1"
    assert noted["gen_ai.usage.input_tokens"]
    assert noted["gen_ai.usage.output_tokens"]
    told = " ".join(span.to_json() for span in spans.get_finished_spans())
    assert "bell?" not in told
    assert "ferryman" not in told


async def test_tokens_of_turns_are_counted_by_model(engine: Engine) -> None:
    async def scrape() -> str:
        async with engine.stack.http.get(f"{engine.service.url}/metrics") as reply:
            return await reply.text()

    async def count() -> int:
        found = TOKENS.search(await scrape())
        return int(found[1]) if found else 0

    before = await count()
    engine.play([ChatAnswer("Hello.")])
    await engine.say(await engine.group("beck"), "Hello?")
    assert await count() - before == 20, await scrape()
