"""Formats tool results and errors: compact JSON, fenced as data.

Structured content starts with the opening tag of the fence and ends with its closing tag. So
recalled text is distinguishable from text that people wrote, and can be removed from transcripts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from reverie.contracts.base import Problem
from reverie.domain.context.text_rendering import DATA_NOTICE, render_memories
from reverie.domain.core.ids import SHORT_LENGTH
from reverie.domain.text.memory_fence import CLOSE_TAG, MEMORY_TITLE, OPEN_TAG, escape_fence_tags

ADVICE = {
    "unauthenticated": "The key is wrong: tell the user to check REVERIE_API_KEY.",
    "forbidden": "This key may not do that here: use another scope, or tell the user.",
    "not_found": "Find its id with recall first.",
    "invalid": "Correct that field and call again.",
    "precondition_failed": "It changed meanwhile: read it again (more get_memory), then decide.",
    "too_large": "Say less: split it, or store the gist.",
    "too_many": "Wait that long, or go on without memory.",
    "conflict": "Read what stands (current), then decide.",
    "unavailable": "Go on without memory and try once more later.",
}
"""Advice for a model on a problem, by the problem's code."""

_DROPPED_FIELDS = frozenset(
    {
        *("accessed_at", "access_count", "arms", "base_confidence", "provenance", "short_id"),
        *("snippet", "tier", "updated_at"),
    }
)
_UNREAD_FIELDS = frozenset({"confidence", "intent", "search_mode", "tokens", "trace_id"})
_DEFAULTS = {
    "type": "memory",
    "status": "active",
    "linked": False,
    "staleness": 0.0,
    "pinned": False,
    "is_active": True,
    "answered": True,
    "degraded": [],
}
"""Fields of memories and answers with the values that say nothing."""
_NEVER = object()
_STORED_TEXTS = frozenset({"content", "key", "label", "metadata", "summary", "tags", "text"})
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d):\d\d(?:\.\d+)?(Z|[+-]\d\d:\d\d)$")
_FENCE_FIELDS = frozenset({"fence", "end"})


def compact(value: Any, nested: bool = False) -> Any:
    """A body without nulls, without empty values in nested objects, and with escaped fence tags.

    The tags are escaped in names, too: those of metadata are the caller's.
    """
    if isinstance(value, Mapping):
        return {
            escape_fence_tags(name): compact(item, True)
            for name, item in value.items()
            if item is not None
            and name not in _DROPPED_FIELDS
            and not (nested and item in ([], {}, ""))
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [compact(item, True) for item in value]
    return escape_fence_tags(value) if isinstance(value, str) else value


def shorten(value: Any) -> Any:
    """A body of memories for a model: short ids, and without what goes without saying.

    Whatever has a default is named only where it differs; times are cut to the minute. A score
    says nothing beside a relevance: the memories are in order. The relevance of an answer is that
    of its most relevant memory.
    """
    if isinstance(value, Mapping):
        unread = _UNREAD_FIELDS | ({"score"} if "relevance" in value else set())
        unread |= {"relevance"} if "memories" in value else set()
        return {
            name: item if name in _STORED_TEXTS else shorten(item)
            for name, item in value.items()
            if name not in unread and _DEFAULTS.get(name, _NEVER) != item
        }
    if isinstance(value, str):
        return value[-SHORT_LENGTH:] if _UUID.fullmatch(value) else _TIME.sub(r"\1\2", value)
    if isinstance(value, Sequence):
        return [shorten(item) for item in value]
    return round(value, 2) if isinstance(value, float) else value


def escape_tags(value: Any) -> Any:
    """A body without nulls and with escaped fence tags."""
    if isinstance(value, Mapping):
        return {
            escape_fence_tags(name): escape_tags(item)
            for name, item in value.items()
            if item is not None
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [escape_tags(item) for item in value]
    return escape_fence_tags(value) if isinstance(value, str) else value


def fence_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """One JSON object: the opening tag of the fence, the body, the closing tag."""
    content = {name: item for name, item in body.items() if name not in _FENCE_FIELDS}
    return {"fence": f"{OPEN_TAG} {MEMORY_TITLE}: {DATA_NOTICE}", **content, "end": CLOSE_TAG}


def to_json(body: Any) -> str:
    """Compact JSON."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def format_problem(problem: Problem) -> tuple[str, dict[str, Any]]:
    """A problem as text with advice for a model, and as the data that REST sends."""
    messages = [f"{problem.code}: {problem.detail}"]
    other_errors = [error for error in problem.errors or () if error.get("field") != problem.field]
    messages += [f"{error['field']}: {error['reason']}" for error in other_errors]
    if problem.code in ADVICE:
        messages.append(ADVICE[problem.code])
    body = problem.model_dump(mode="json", exclude_none=True, exclude={"instance"})
    if problem.current:
        is_memory = {"id", "content"} <= problem.current.keys()
        messages.append(
            render_memories([problem.current], "")
            if is_memory
            else to_json(escape_tags(problem.current))
        )
        body = fence_body({**body, "current": compact(problem.current)})
    return "\n".join(messages), body
