"""Example requests and responses for the OpenAPI document. A test validates them."""

from __future__ import annotations

import json
from typing import Any

JsonObject = dict[str, Any]

MEMORY_ID = "01936f1e-5b7a-7c11-9d2e-3a4b5c6d7e8f"
OTHER_MEMORY_ID = "01936f1e-6c8b-7d22-8e3f-4b5c6d7e8f90"
SESSION_ID = "01936f1d-0a1b-7c2d-9e3f-4a5b6c7d8e9f"
COMMIT_SHA = "9fceb02d0ae598e95dc970b74767f19372d61af8"
TIMESTAMP = "2026-01-31T10:00:00Z"
CONTENT = "We keep money in integer cents: floats lost a cent per thousand orders."

IMPORT_LINES: list[JsonObject] = [
    {"type": "header", "format": "reverie", "version": 1},
    {
        "type": "memory",
        "id": MEMORY_ID,
        "scope": "project/shop",
        "kind": "lesson",
        "tier": "warm",
        "status": "active",
        "version": 1,
        "content": "Tests need Redis up.",
        "confidence": 0.8,
        "pinned": False,
        "source": "remember",
        "created": TIMESTAMP,
        "updated": TIMESTAMP,
    },
]

REQUEST_EXAMPLES: dict[str, Any] = {
    "POST /v1/remember": {
        "content": CONTENT,
        "kind": "decision",
        "scope": "project/shop",
        "tags": ["money"],
        "git": {"branch": "main", "files": ["src/cart.py"]},
    },
    "POST /v1/remember/batch": {
        "items": [{"content": CONTENT}, {"content": "Tests need Redis up."}]
    },
    "POST /v1/recall": {"query": "how is money stored?", "scopes": ["project/shop"], "limit": 5},
    "POST /v1/preflow": {
        "session": SESSION_ID,
        "query": "fix the cart total",
        "files": ["cart.py"],
    },
    "POST /v1/sessions/start": {"agent": "claude-code", "project": "shop", "branch": "main"},
    "POST /v1/sessions/{id}/end": {"summary": "The cart total is right again."},
    "POST /v1/sessions/{id}/correct": {"diff": "No longer use floats for money, use cents"},
    "POST /v1/turns": {
        "session": SESSION_ID,
        "turns": [{"role": "user", "content": "Why is the total off by a cent?"}],
    },
    "PUT /v1/agents/{name}": {"models": ["default"], "persona": "Be brief."},
    "POST /v1/groups": {"agents": ["beck", "rams"], "project": "shop"},
    "POST /v1/groups/{id}/messages": {"text": "How do we store prices?", "mentions": ["beck"]},
    "POST /v1/groups/{id}/approvals": {
        "turn": OTHER_MEMORY_ID,
        "call": "call_1",
        "approved": True,
    },
    "POST /v1/groups/{id}/stop": {"turn": OTHER_MEMORY_ID},
    "PATCH /v1/memories/{id}": {"content": CONTENT, "reason": "clearer wording"},
    "POST /v1/memories/{id}/rollback": {"version": 1, "reason": "the edit was wrong"},
    "POST /v1/memories/{id}/feedback": {"verdict": "approve"},
    "POST /v1/memories/{id}/pictures": {
        "data": "R0lGODlhAQABAAAAACw=",
        "text": "The cart shows a total of 12.00",
    },
    "POST /v1/memories/{id}/erase": {"reason": "asked for by the person whom it names"},
    "POST /v1/import": "".join(f"{json.dumps(line)}\n" for line in IMPORT_LINES),
    "POST /mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
    "POST /v1/admin/keys": {"label": "ci of shop", "role": "ci", "project": "shop"},
    "PATCH /v1/admin/keys/{id}": {"limits": {"requests_per_minute": 600, "memories_per_day": 5000}},
    "POST /v1/admin/keys/{id}/rotate": {"overlap_seconds": 3600},
    "DELETE /v1/admin/tenant": {"confirm": "acme"},
    "POST /v1/links": {"from": MEMORY_ID, "to": OTHER_MEMORY_ID, "type": "caused_by"},
    "PATCH /v1/tasks/{id}": {"state": "done"},
    "POST /v1/tasks/{id}/claim": {"agent": "claude-code", "seconds": 600},
    "POST /v1/tasks/{id}/release": {"agent": "claude-code"},
    "POST /v1/facts": {
        "topic": "postgres",
        "statement": "An index on an expression needs ANALYZE before it is used well.",
        "confidence": "high",
        "verified": "2026-01-31",
    },
    "POST /v1/documents": {
        "collection": "runs",
        "documents": [{"key": "2026-01-31", "value": {"step": 3}}],
    },
    "POST /v1/memories/forget": {"scope": "project/shop", "tag": "draft"},
    "POST /v1/documents/delete": {"collection": "runs", "keys": ["2026-01-31"]},
    "PUT /v1/vault/{key}": {"value": "shop-eu-1.internal", "secret": False},
    "PATCH /v1/projects/{name}/settings": {"dream": {}},
    "PATCH /v1/admin/settings": {"dream": {}},
    "PUT /v1/projects/{name}/links/{linked}": {"discoverable": True},
    "POST /v1/predict": {"project": "shop", "edited": ["src/cart.py"]},
    "POST /v1/recall/projects": {"query": "how are refunds booked?"},
    "POST /v1/dream": {"scope": "project/shop"},
    "POST /v1/git/changes": {
        "project": "shop",
        "branch": "main",
        "after": COMMIT_SHA,
        "commits": [{"sha": COMMIT_SHA, "subject": "Count in cents", "committed_at": TIMESTAMP}],
        "files": [{"path": "src/cart.py", "status": "modified", "hunks": [[10, 3, 10, 5]]}],
    },
    "POST /v1/git/anchors": {
        "project": "shop",
        "anchors": [{"memory": MEMORY_ID, "git": {"lines": {"src/cart.py": [[10, 14]]}}}],
    },
    "PUT /v1/git/webhooks/github/{project}": {"secret": None},
    "PUT /v1/git/webhooks/gitlab/{project}": {"secret": None},
    "POST /v1/git/github/{tenant}/{project}": {"ref": "refs/heads/main", "commits": []},
    "POST /v1/git/gitlab/{tenant}/{project}": {"ref": "refs/heads/main", "commits": []},
}
"""Bodies, by method and path."""

_PAGE_QUERY = {"limit": 20}
QUERY_EXAMPLES: dict[str, JsonObject] = {
    "GET /v1/memories": {**_PAGE_QUERY, "scope": "project/shop", "kind": ["decision"]},
    "GET /v1/context": {"project": "shop", "format": "json"},
    "GET /v1/stale": {**_PAGE_QUERY, "project": "shop"},
    "GET /v1/sessions": {**_PAGE_QUERY, "project": "shop"},
    "GET /v1/sessions/{id}/turns": _PAGE_QUERY,
    "GET /v1/impact": {"path": "src/cart.py", "project": "shop"},
    "GET /v1/graph/stats": {"project": "shop"},
    "GET /v1/memories/{id}/subgraph": {"depth": 2},
    "GET /v1/tasks": {**_PAGE_QUERY, "state": ["todo"]},
    "GET /v1/facts": {"topic": "postgres"},
    "GET /v1/events": {"scope": ["project/shop"], "event": ["remembered"]},
    "GET /v1/events/page": {"scope": ["project/shop"], "event": ["remembered"], "limit": 20},
    "GET /v1/export": {"format": "jsonl", "scope": ["project/shop"]},
    "GET /v1/git/anchors": {**_PAGE_QUERY, "project": "shop"},
    "GET /v1/git/webhooks": {**_PAGE_QUERY, "project": "shop"},
    "GET /v1/skills": {**_PAGE_QUERY, "scope": "project/shop"},
    "DELETE /v1/admin/scopes": {"scope": "project/shop/topic/old"},
    "POST /v1/import": {"dry_run": True},
}
"""Parameters, by method and path."""

_EXAMPLES_BY_FIELD: JsonObject = {
    "id": MEMORY_ID,
    "session": SESSION_ID,
    "content": CONTENT,
    "snippet": "We keep money in integer cents",
    "summary": "Money is kept in integer cents.",
    "scope": "project/shop",
    "project": "shop",
    "agent": "claude-code",
    "kind": "decision",
    "tier": "warm",
    "status": "active",
    "key": "money",
    "tags": ["money"],
    "branch": "main",
    "commit": COMMIT_SHA,
    "sha": COMMIT_SHA,
    "path": "src/cart.py",
    "type": "caused_by",
    "grade": "stale",
    "score": 0.82,
    "confidence": 0.9,
    "version": 3,
    "source": "remember",
    "role": "user",
    "label": "ci of shop",
    "verified": "2026-01-31",
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "search_mode": "hybrid",
    "next": None,
    "markdown": "## What is known of shop\n\n- Money is kept in integer cents.\n",
    "context": "## What is known of shop\n\n- Money is kept in integer cents.\n",
}
_EXAMPLES_BY_MODEL: dict[tuple[str | None, str], Any] = {
    ("KeyBody", "role"): "ci",
    ("MadeKey", "role"): "ci",
    ("KeyBody", "reads"): ["project/shop/*"],
    ("MadeKey", "reads"): ["project/shop/*"],
    ("KeyBody", "writes"): ["project/shop/*"],
    ("MadeKey", "writes"): ["project/shop/*"],
}
_EXAMPLES_BY_FORMAT = {"uuid": OTHER_MEMORY_ID, "date-time": TIMESTAMP, "date": "2026-01-31"}
_MAX_DEPTH = 6


def build_example(
    schema: JsonObject, definitions: JsonObject, name: str = "", depth: int = 0
) -> Any:
    """A value that is valid for the JSON schema, and realistic for known field names."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "enum" in schema or "const" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    variants = schema.get("anyOf") or schema.get("oneOf")
    if variants:
        return _union_example(variants, definitions, name, depth)
    if name in _EXAMPLES_BY_FIELD and _matches_schema(_EXAMPLES_BY_FIELD[name], schema):
        return _EXAMPLES_BY_FIELD[name]
    match schema.get("type"):
        case "object":
            return _object_example(schema, definitions, depth)
        case "array":
            return _array_example(schema, definitions, name, depth)
    return _scalar_example(schema, name)


def _scalar_example(schema: JsonObject, name: str) -> Any:
    default = schema.get("default")
    match schema.get("type"):
        case "string":
            return _EXAMPLES_BY_FORMAT.get(schema.get("format", ""), default or name or "text")
        case "integer" | "number":
            return default or schema.get("minimum") or 1
        case "boolean":
            return bool(default)
        case "null":
            return None
    return "text" if default is None else default


def _union_example(
    variants: list[JsonObject], definitions: JsonObject, name: str, depth: int
) -> Any:
    nullable = any(variant.get("type") == "null" for variant in variants)
    if nullable and (
        depth > _MAX_DEPTH or (name in _EXAMPLES_BY_FIELD and _EXAMPLES_BY_FIELD[name] is None)
    ):
        return None
    return build_example(variants[0], definitions, name, depth + 1)


def _object_example(schema: JsonObject, definitions: JsonObject, depth: int) -> JsonObject:
    overrides = {
        name: _EXAMPLES_BY_MODEL.get((schema.get("title"), name))
        for name in schema.get("properties", {})
    }
    return {
        name: overrides[name] or build_example(property_schema, definitions, name, depth + 1)
        for name, property_schema in schema.get("properties", {}).items()
    }


def _array_example(schema: JsonObject, definitions: JsonObject, name: str, depth: int) -> list[Any]:
    if "prefixItems" in schema:
        return [
            build_example(item_schema, definitions, name, depth + 1)
            for item_schema in schema["prefixItems"]
        ]
    if depth > _MAX_DEPTH or "items" not in schema:
        return []
    return [build_example(schema["items"], definitions, name.removesuffix("s"), depth + 1)]


_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "array": list,
    "null": type(None),
}


def _matches_schema(value: object, schema: JsonObject) -> bool:
    json_type = schema.get("type")
    if (
        not isinstance(json_type, str)
        or json_type not in _PYTHON_TYPES
        or not isinstance(value, _PYTHON_TYPES[json_type])
    ):
        return False
    string_format = schema.get("format")
    return string_format not in _EXAMPLES_BY_FORMAT or (
        string_format == "uuid" and isinstance(value, str) and len(value) == 36
    )
