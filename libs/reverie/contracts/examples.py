"""What calls look like: the examples of the OpenAPI document, held against the models by a test."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

MEMORY = "01936f1e-5b7a-7c11-9d2e-3a4b5c6d7e8f"
OTHER = "01936f1e-6c8b-7d22-8e3f-4b5c6d7e8f90"
SESSION = "01936f1d-0a1b-7c2d-9e3f-4a5b6c7d8e9f"
SHA = "9fceb02d0ae598e95dc970b74767f19372d61af8"
WHEN = "2026-01-31T10:00:00Z"
SAID = "We keep money in integer cents: floats lost a cent per thousand orders."

REQUESTS: dict[str, Any] = {
    "POST /v1/remember": {
        "content": SAID,
        "kind": "decision",
        "scope": "project/shop",
        "tags": ["money"],
        "git": {"branch": "main", "files": ["src/cart.py"]},
    },
    "POST /v1/remember/batch": {"items": [{"content": SAID}, {"content": "Tests need Redis up."}]},
    "POST /v1/recall": {"query": "how is money stored?", "scopes": ["project/shop"], "limit": 5},
    "POST /v1/preflow": {"session": SESSION, "query": "fix the cart total", "files": ["cart.py"]},
    "POST /v1/sessions/start": {"agent": "claude-code", "project": "shop", "branch": "main"},
    "POST /v1/sessions/{id}/end": {"summary": "The cart total is right again."},
    "POST /v1/sessions/{id}/adjust": {"diff": "No longer use floats for money, use cents"},
    "POST /v1/turns": {
        "session": SESSION,
        "turns": [{"role": "user", "content": "Why is the total off by a cent?"}],
    },
    "PATCH /v1/memories/{id}": {"content": SAID, "reason": "said more clearly"},
    "POST /v1/memories/{id}/rollback": {"version": 1, "reason": "the edit was wrong"},
    "POST /v1/memories/{id}/feedback": {"verdict": "approve"},
    "POST /v1/import": '{"type": "memory", "content": "Tests need Redis up."}\n',
    "POST /mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
    "POST /v1/admin/keys": {"label": "ci of shop", "role": "ci", "project": "shop"},
    "PATCH /v1/admin/keys/{id}": {"limits": {"requests_a_minute": 600, "memories_a_day": 5000}},
    "POST /v1/admin/keys/{id}/rotate": {"overlap_seconds": 3600},
    "DELETE /v1/admin/tenant": {"confirm": "acme"},
    "POST /v1/links": {"from": MEMORY, "to": OTHER, "type": "caused_by"},
    "PATCH /v1/tasks/{id}": {"state": "done"},
    "POST /v1/tasks/{id}/claim": {"agent": "claude-code", "seconds": 600},
    "POST /v1/tasks/{id}/release": {"agent": "claude-code"},
    "POST /v1/claims": {
        "topic": "postgres",
        "claim": "An index on an expression needs ANALYZE before it is used well.",
        "confidence": "high",
        "verified": "2026-01-31",
    },
    "PUT /v1/vault/{key}": {"value": "shop-eu-1.internal", "secret": False},
    "PATCH /v1/projects/{name}/settings": {"dream": {}},
    "PATCH /v1/admin/settings": {"dream": {}},
    "POST /v1/dream": {"scope": "project/shop"},
    "POST /v1/git/changes": {
        "project": "shop",
        "branch": "main",
        "after": SHA,
        "commits": [{"sha": SHA, "subject": "Count in cents", "committed_at": WHEN}],
        "files": [{"path": "src/cart.py", "status": "modified", "hunks": [[10, 3, 10, 5]]}],
    },
    "POST /v1/git/anchors": {
        "project": "shop",
        "anchors": [{"memory": MEMORY, "git": {"lines": {"src/cart.py": [[10, 14]]}}}],
    },
    "PUT /v1/git/webhooks/github/{project}": {"secret": None},
    "PUT /v1/git/webhooks/gitlab/{project}": {"secret": None},
    "POST /v1/git/github/{tenant}/{project}": {"ref": "refs/heads/main", "commits": []},
    "POST /v1/git/gitlab/{tenant}/{project}": {"ref": "refs/heads/main", "commits": []},
}
"""Bodies, by method and path."""

_PAGE = {"limit": 20}
QUERIES: dict[str, Json] = {
    "GET /v1/memories": {**_PAGE, "scope": "project/shop", "kind": ["decision"]},
    "GET /v1/context": {"project": "shop", "format": "json"},
    "GET /v1/stale": {**_PAGE, "project": "shop"},
    "GET /v1/sessions": {**_PAGE, "project": "shop"},
    "GET /v1/sessions/{id}/turns": _PAGE,
    "GET /v1/impact": {"path": "src/cart.py", "project": "shop"},
    "GET /v1/graph/stats": {"project": "shop"},
    "GET /v1/memories/{id}/subgraph": {"depth": 2},
    "GET /v1/tasks": {**_PAGE, "state": ["todo"]},
    "GET /v1/claims": {"topic": "postgres"},
    "GET /v1/events": {"scope": ["project/shop"], "event": ["remembered"]},
    "GET /v1/events/ws": {"scope": ["project/shop"], "event": ["remembered"]},
    "GET /v1/events/page": {"scope": ["project/shop"], "event": ["remembered"], "limit": 20},
    "GET /v1/export": {"format": "jsonl", "scope": ["project/shop"]},
    "GET /v1/git/anchors": {**_PAGE, "project": "shop"},
    "GET /v1/git/webhooks": {**_PAGE, "project": "shop"},
    "GET /v1/skills": {**_PAGE, "scope": "project/shop"},
    "DELETE /v1/admin/scopes": {"scope": "project/shop/topic/old"},
    "POST /v1/import": {"dry_run": True},
}
"""Parameters, by method and path."""

_NAMED: Json = {
    "id": MEMORY,
    "session": SESSION,
    "content": SAID,
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
    "commit": SHA,
    "sha": SHA,
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
_OF_MODEL: dict[tuple[str | None, str], Any] = {
    ("KeyBody", "role"): "ci",
    ("MadeKey", "role"): "ci",
    ("KeyBody", "reads"): ["project/shop/*"],
    ("MadeKey", "reads"): ["project/shop/*"],
    ("KeyBody", "writes"): ["project/shop/*"],
    ("MadeKey", "writes"): ["project/shop/*"],
}
_FORMATS = {"uuid": OTHER, "date-time": WHEN, "date": "2026-01-31"}
_DEEPEST = 6


def example_of(schema: Json, definitions: Json, name: str = "", depth: int = 0) -> Any:
    """A value that the JSON schema admits, telling where the name of the field says what it is."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "enum" in schema or "const" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    kinds = schema.get("anyOf") or schema.get("oneOf")
    if kinds:
        return _of_kinds(kinds, definitions, name, depth)
    if name in _NAMED and _fits(_NAMED[name], schema):
        return _NAMED[name]
    match schema.get("type"):
        case "object":
            return _of_object(schema, definitions, depth)
        case "array":
            return _of_array(schema, definitions, name, depth)
    return _of_plain(schema, name)


def _of_plain(schema: Json, name: str) -> Any:
    given = schema.get("default")
    match schema.get("type"):
        case "string":
            return _FORMATS.get(schema.get("format", ""), given or name or "text")
        case "integer" | "number":
            return given or schema.get("minimum") or 1
        case "boolean":
            return bool(given)
        case "null":
            return None
    return "text" if given is None else given


def _of_kinds(kinds: list[Json], definitions: Json, name: str, depth: int) -> Any:
    nullable = any(kind.get("type") == "null" for kind in kinds)
    if nullable and (depth > _DEEPEST or (name in _NAMED and _NAMED[name] is None)):
        return None
    return example_of(kinds[0], definitions, name, depth + 1)


def _of_object(schema: Json, definitions: Json, depth: int) -> Json:
    told = {
        name: _OF_MODEL.get((schema.get("title"), name)) for name in schema.get("properties", {})
    }
    return {
        name: told[name] or example_of(one, definitions, name, depth + 1)
        for name, one in schema.get("properties", {}).items()
    }


def _of_array(schema: Json, definitions: Json, name: str, depth: int) -> list[Any]:
    if "prefixItems" in schema:
        return [example_of(one, definitions, name, depth + 1) for one in schema["prefixItems"]]
    if depth > _DEEPEST or "items" not in schema:
        return []
    return [example_of(schema["items"], definitions, name.removesuffix("s"), depth + 1)]


_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "array": list,
    "null": type(None),
}


def _fits(value: object, schema: Json) -> bool:
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _TYPES or not isinstance(value, _TYPES[kind]):
        return False
    given = schema.get("format")
    return given not in _FORMATS or (
        given == "uuid" and isinstance(value, str) and len(value) == 36
    )
