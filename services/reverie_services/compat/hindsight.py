"""The calls of Hindsight's client: create_bank, retain, recall, list_memories, delete_bank.

A bank is the scope `project/<bank>`. Each item becomes a memory as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reverie.domain.core.errors import InvalidInput
from reverie_services.compat.calls import CompatCall


async def answer(call: CompatCall) -> Any:
    """The answer to one call."""
    match call.method, call.path.strip("/").split("/"):
        case "PUT" | "PATCH", ["v1", "default", "banks", bank]:
            return _bank(bank, call.body)
        case "DELETE", ["v1", "default", "banks", bank] | [
            "v1", "default", "banks", bank, "memories",
        ]:  # fmt: skip
            count = await call.forget({"scope": f"project/{bank}"})
            return {"success": True, "deleted_count": count}
        case "POST", ["v1", "default", "banks", bank, "memories"]:
            return await _retain(call, bank)
        case "POST", ["v1", "default", "banks", bank, "memories", "recall"]:
            return await _recall(call, bank)
        case "GET", ["v1", "default", "banks", bank, "memories", "list"]:
            return await _list(call, bank)
    raise call.no_route()


async def _retain(call: CompatCall, bank: str) -> Any:
    items = [_item(item, bank) for item in call.body.get("items") or []]
    if not items:
        raise InvalidInput("items", "holds nothing to retain")
    await call.remember(items)
    return {"success": True, "bank_id": bank, "items_count": len(items), "async": False}


def _item(item: Mapping[str, Any], bank: str) -> dict[str, Any]:
    content = item.get("content")
    if isinstance(content, list):
        if any(block.get("type") != "text" for block in content):
            raise InvalidInput("items", "hold a picture: attach it by /v1/memories/{id}/pictures")
        content = "\n".join(block["text"] for block in content)
    names = ("context", "document_id", "timestamp")
    known = {name: str(item[name]) for name in names if item.get(name)}
    return {
        "content": content,
        "scope": f"project/{bank}",
        "tags": item.get("tags") or [],
        "metadata": {**(item.get("metadata") or {}), **known},
    }


async def _recall(call: CompatCall, bank: str) -> Any:
    body = {
        "query": call.body.get("query"),
        "scopes": [f"project/{bank}"],
        "budget_tokens": call.body.get("max_tokens") or 4096,
        **({"tags": call.body["tags"]} if call.body.get("tags") else {}),
    }
    found = await call.ask("POST", "/v1/recall", body=body)
    hits = found["memories"] if found["answered"] else []
    results = [
        {
            "id": hit["id"],
            "text": hit["content"],
            "type": "world",
            "mentioned_at": hit["created_at"],
            "tags": hit["tags"],
            "scores": {"final": hit["score"]},
        }
        for hit in hits
    ]
    return {"results": results}


async def _list(call: CompatCall, bank: str) -> Any:
    limit, offset = int(call.query.get("limit", 100)), int(call.query.get("offset", 0))
    found = [
        {
            "id": memory["id"],
            "text": memory["content"],
            "fact_type": "world",
            "date": memory["created_at"],
            "tags": memory["tags"],
            "metadata": memory["metadata"],
        }
        async for memory in call.memories({"scope": f"project/{bank}"})
    ]
    page = found[offset : offset + limit]
    return {"items": page, "total": len(found), "limit": limit, "offset": offset}


def _bank(bank: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """A bank needs no making; traits of a character are not kept."""
    traits = dict.fromkeys(("skepticism", "literalism", "empathy"), 3)
    name = body.get("name") or bank
    return {"bank_id": bank, "name": name, "disposition": traits, "mission": ""}
