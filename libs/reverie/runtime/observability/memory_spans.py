"""Spans of memory operations, as the OpenTelemetry GenAI conventions and OpenInference name them.

https://github.com/open-telemetry/semantic-conventions-genai and
https://github.com/Arize-ai/openinference hold them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry.trace import Span
from pydantic import BaseModel

from reverie.domain.access.principals import Principal
from reverie.runtime.observability.tracing import span

OPERATIONS: Mapping[str, str] = {
    "POST /v1/recall": "search_memory",
    "POST /v1/preflow": "search_memory",
    "POST /v1/remember": "upsert_memory",
    "POST /v1/remember/batch": "upsert_memory",
    "PATCH /v1/memories/{id}": "update_memory",
    "POST /v1/memories/{id}/rollback": "update_memory",
    "DELETE /v1/memories/{id}": "delete_memory",
    "POST /v1/memories/{id}/erase": "delete_memory",
}
"""The routes that are memory operations, by their name in the conventions."""
MAX_DOCUMENTS = 50


class MemorySpan:
    """The span of one operation. `with_content`: whether it may hold questions and memories."""

    def __init__(self, current: Span, operation: str, with_content: bool) -> None:
        self._span, self._operation, self._with_content = current, operation, with_content

    def record_request(self, principal: Principal, body: Any, path: Mapping[str, str]) -> None:
        """Notes who calls, for which conversation, and what is asked."""
        self._set("gen_ai.operation.name", self._operation)
        self._set("gen_ai.provider.name", "reverie")
        self._set("gen_ai.memory.store.id", principal.tenant_name)
        self._set("gen_ai.agent.name", principal.agent)
        self._set("gen_ai.memory.record.id", path.get("id"))
        session = getattr(body, "session", None)
        self._set("gen_ai.conversation.id", str(session) if session else None)
        if self._operation == "search_memory":
            self._set("openinference.span.kind", "RETRIEVER")
            if self._with_content:
                self._set("gen_ai.memory.query.text", body.query)
                self._set("input.value", body.query)

    def record_response(self, body: Any) -> None:
        """Notes the memories that were found, or the one that was written."""
        if not isinstance(body, BaseModel):
            return
        if self._operation != "search_memory":
            memory_id = getattr(body, "id", None)
            self._set("gen_ai.memory.record.id", str(memory_id) if memory_id else None)
            self._set("gen_ai.memory.record.count", len(getattr(body, "items", (memory_id,))))
            return
        found = getattr(body, "memories", None) or getattr(body, "items", None) or []
        self._set("gen_ai.memory.record.count", len(found))
        records = [self._describe(number, hit) for number, hit in enumerate(found[:MAX_DOCUMENTS])]
        if self._with_content:
            self._set("gen_ai.memory.records", json.dumps(records, ensure_ascii=False))

    def _describe(self, number: int, hit: Any) -> dict[str, Any]:
        """One memory, as a document of OpenInference; returns it as a record."""
        record: dict[str, Any] = {"id": str(hit.id or ""), "score": float(hit.score)}
        prefix = f"retrieval.documents.{number}.document"
        self._set(f"{prefix}.id", record["id"])
        self._set(f"{prefix}.score", record["score"])
        metadata = {"kind": hit.kind, "scope": hit.scope}
        self._set(f"{prefix}.metadata", json.dumps(metadata, ensure_ascii=False))
        if self._with_content:
            content = str(getattr(hit, "content", None) or getattr(hit, "text", ""))
            self._set(f"{prefix}.content", content)
            record |= {"content": content, "metadata": metadata}
        return record

    def _set(self, name: str, value: str | float | None) -> None:
        if value is not None:
            self._span.set_attribute(name, value)


@contextmanager
def memory_span(route: str, with_content: bool) -> Iterator[MemorySpan | None]:
    """A span around the handler of a route; None if it is none of memory, or is not kept."""
    operation = OPERATIONS.get(route)
    if operation is None:
        yield None
        return
    with span(operation) as current:
        yield MemorySpan(current, operation, with_content) if current.is_recording() else None
