"""The calls of mem0's client: add, search, get, get_all, update, delete, delete_all, history.

A user's memories are those of the scope `user/<id>`; `agent_id`, `app_id` and `run_id` name
`agent/`, `project/` and `topic/`. Each is a tag, too, which says how the client writes it. Each
message becomes a memory as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from reverie.domain.core.errors import InvalidInput
from reverie.domain.formats.mem0 import MEM0_SCOPES, place_entities
from reverie_services.compat.bodies import (
    Mem0AddBody,
    Mem0Entities,
    Mem0FilterBody,
    Mem0Filters,
    Mem0Page,
    Mem0SearchBody,
)
from reverie_services.compat.calls import CompatCall


async def answer(call: CompatCall) -> Any:
    """The answer to one call."""
    match call.method, call.path.strip("/").split("/"):
        case "GET", ["v1", "ping"]:
            await call.ask("GET", "/v1/memories", {"limit": 1})
            return {"status": "ok", "org_id": "reverie", "project_id": "reverie"}
        case "POST", ["v3", "memories", "add"]:
            return await _add(call)
        case "POST", ["v3", "memories", "search"]:
            return await _search(call)
        case "POST", ["v3", "memories"]:
            return await _get_all(call)
        case "DELETE", ["v1", "memories"]:
            await call.forget(_place(_entities(call.parse_query(Mem0Entities))))
            return {"message": "Memories deleted successfully!"}
        case method, ["v1", "memories", *rest] if rest:
            return await _answer_of_memory(call, method, rest)
    raise call.no_route()


async def _answer_of_memory(call: CompatCall, method: str, rest: list[str]) -> Any:
    path = f"/v1/memories/{rest[0]}"
    match method, rest[1:]:
        case "GET", []:
            return _memory(await call.ask("GET", path))
        case "PUT", []:
            names = {"text": "content", "metadata": "metadata"}
            changes = {own: call.body[name] for name, own in names.items() if name in call.body}
            await call.ask("PATCH", path, body=changes)
            return _memory(await call.ask("GET", path))
        case "DELETE", []:
            await call.ask("DELETE", path)
            return {"message": "Memory deleted successfully!"}
        case "GET", ["history"]:
            page = await call.ask("GET", f"{path}/history")
            return [{"memory_id": rest[0], **version} for version in page["items"]]
    raise call.no_route()


async def _add(call: CompatCall) -> Any:
    body = call.parse_body(Mem0AddBody)
    entities = _entities(body) | _filtered(body.filters)
    scope, tags = place_entities(entities)
    _place(entities)
    said = [one.content for one in body.messages or [] if isinstance(one.content, str)]
    if not said:
        raise InvalidInput("messages", "holds no message with text")
    metadata = body.metadata or {}
    items = [{"content": text, "scope": scope, "tags": tags, "metadata": metadata} for text in said]
    stored = await call.remember(items)
    events = {"created": "ADD", "superseded": "UPDATE", "duplicate": "NONE"}
    return {
        "results": [
            {"id": made["id"], "memory": text, "event": events[made["status"]]}
            for text, made in zip(said, stored, strict=True)
        ]
    }


def _nearness(hit: Mapping[str, Any]) -> float:
    """The relevance of a hit, which may be 0; its score where relevance is not known."""
    relevance = hit["relevance"]
    return float(hit["score"] if relevance is None else relevance)


async def _search(call: CompatCall) -> Any:
    asked = call.parse_body(Mem0SearchBody)
    place = _place(_filtered(asked.filters))
    body = {
        "query": asked.query,
        "scopes": [place["scope"]],
        "limit": asked.top_k or 10,
        **({"tags": [place["tag"]]} if "tag" in place else {}),
    }
    found = await call.ask("POST", "/v1/recall", body=body)
    least = asked.threshold or 0.0
    hits = found["memories"] if found["answered"] else []
    return {"results": [_memory(hit) for hit in hits if _nearness(hit) >= least]}


async def _get_all(call: CompatCall) -> Any:
    asked = call.parse_query(Mem0Page)
    page, size = asked.page, asked.page_size
    place = _place(_filtered(call.parse_body(Mem0FilterBody).filters))
    found = [_memory(memory) async for memory in call.memories(place)]
    start = (page - 1) * size
    following = f"?page={page + 1}&page_size={size}" if start + size < len(found) else None
    return {
        "count": len(found),
        "next": following,
        "previous": None,
        "results": list(islice(found, start, start + size)),
    }


def _entities(sent: Mem0Entities) -> dict[str, str]:
    return sent.model_dump(include=set(MEM0_SCOPES), exclude_none=True)


def _filtered(filters: Mem0Filters | None) -> dict[str, str]:
    """The entities of a filter, which may be a conjunction."""
    if filters is None:
        return {}
    entities = _entities(filters)
    for condition in filters.conjunction or []:
        entities |= _entities(condition)
    return entities


def _place(entities: Mapping[str, str]) -> dict[str, str]:
    """The scope of the first entity, and a second as a tag."""
    given = [name for name in MEM0_SCOPES if entities.get(name)]
    if not given or len(given) > 2:
        raise InvalidInput("filters", f"needs one or two of {', '.join(MEM0_SCOPES)}")
    scope, tags = place_entities(entities)
    return {"scope": str(scope), **({"tag": tags[-1]} if len(given) == 2 else {})}


def _memory(memory: Mapping[str, Any]) -> dict[str, Any]:
    """A memory in mem0's form, with its entities as they were given, not as slugs."""
    entity, _, value = memory["scope"].partition("/")
    entities = {name: value for name, scope in MEM0_SCOPES.items() if scope == entity}
    categories = []
    for tag in memory.get("tags") or []:
        name, _, given = tag.partition(":")
        if name in MEM0_SCOPES:
            entities[name] = given
        else:
            categories.append(tag)
    return {
        "id": memory["id"],
        "memory": memory["content"],
        "metadata": memory.get("metadata") or {},
        "categories": categories,
        "created_at": memory["created_at"],
        "updated_at": memory.get("updated_at", memory["created_at"]),
        **entities,
        **({"score": memory["score"]} if "score" in memory else {}),
    }
