"""Memory operations as spans by the GenAI and OpenInference conventions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from opentelemetry.sdk.trace import TracerProvider

from reverie.contracts.memories.memories import RememberResponse
from reverie.contracts.recall import RecallRequest, RecallResponse
from reverie.runtime.observability.memory_spans import OPERATIONS, MemorySpan
from tests.interfaces.test_openapi_document import ROUTES
from tests.support.in_memory_runtime import build_principal

MEMORY, SESSION = str(UUID(int=7)), UUID(int=9)
QUESTION = RecallRequest(query="Who rings the bell?", session=SESSION)
ANSWER = RecallResponse.model_validate(
    {
        "memories": [
            {
                "id": MEMORY,
                "content": "The ferryman rings it.",
                "snippet": "rings",
                "score": 0.75,
                "kind": "lesson",
                "scope": "project/quay",
                "created_at": "2026-01-31T10:00:00Z",
                "provenance": {"source": "remember"},
            }
        ],
        "search_mode": "hybrid",
    }
)


def attributes_of(operation: str, request: Any, response: Any, content: bool) -> Mapping[str, Any]:
    """What the span of an operation notes."""
    current = TracerProvider().get_tracer("test").start_span(operation)
    memory = MemorySpan(current, operation, content)
    memory.record_request(build_principal(), request, {})
    memory.record_response(response)
    attributes: Mapping[str, Any] = current.attributes  # type: ignore[attr-defined]
    return attributes


def test_a_recall_is_a_search_of_memory_without_content() -> None:
    noted = attributes_of("search_memory", QUESTION, ANSWER, content=False)
    assert dict(noted) == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.provider.name": "reverie",
        "gen_ai.memory.store.id": "tenant-1",
        "gen_ai.conversation.id": str(SESSION),
        "gen_ai.memory.record.count": 1,
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.id": MEMORY,
        "retrieval.documents.0.document.score": 0.75,
        "retrieval.documents.0.document.metadata": '{"kind": "lesson", "scope": "project/quay"}',
    }


def test_content_is_noted_where_it_is_allowed() -> None:
    noted = attributes_of("search_memory", QUESTION, ANSWER, content=True)
    assert noted["gen_ai.memory.query.text"] == noted["input.value"] == "Who rings the bell?"
    assert noted["retrieval.documents.0.document.content"] == "The ferryman rings it."
    assert json.loads(noted["gen_ai.memory.records"]) == [
        {
            "id": MEMORY,
            "score": 0.75,
            "content": "The ferryman rings it.",
            "metadata": {"kind": "lesson", "scope": "project/quay"},
        }
    ]


@pytest.mark.parametrize("content", [True, False])
def test_a_write_names_its_memory_and_never_its_content(content: bool) -> None:
    response = RememberResponse(id=UUID(MEMORY), status="created", version=1)
    noted = attributes_of("upsert_memory", QUESTION, response, content)
    assert noted["gen_ai.memory.record.id"] == MEMORY
    assert noted["gen_ai.memory.record.count"] == 1
    assert "bell" not in repr(noted)


def test_every_memory_operation_is_a_route() -> None:
    assert OPERATIONS.keys() <= {route.name for route in ROUTES}
