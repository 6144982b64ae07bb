"""Saves a question and the memories that answer it, as `make bench-quality` reads them."""

from __future__ import annotations

import json

from reverie.mcp.rest_calls import invalid_argument
from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.console.requests import file_response
from reverie_services.console.visit import Visit, memory_path

_MAX_DOCUMENTS = 100


async def save_golden_set(visit: Visit) -> OutgoingResponse:
    """A file with one question; the documents are all the memories that were compared for it."""
    question = visit.form.get("question", "").strip()
    shown = visit.form.getall("shown", [])[:_MAX_DOCUMENTS]
    relevant = [item for item in visit.form.getall("relevant", []) if item in shown]
    if not question or not relevant:
        raise invalid_argument("relevant", "mark at least one memory as relevant")
    documents = {item: (await visit.get(memory_path(item)))["content"] for item in shown}
    golden = {"documents": documents, "questions": {"own": [[question, relevant, "marked"]]}}
    content = json.dumps(golden, ensure_ascii=False, indent=2)
    return file_response("golden.json", "application/json", content)
