"""The calls of Hindsight's client: create_bank, retain, recall, list_memories, delete_bank.

A bank is the scope `project/<bank>`. Each item becomes a memory as it is.
"""

from __future__ import annotations

from typing import Any

from reverie.domain.core.errors import InvalidInput
from reverie_services.compat.bodies import (
    HindsightBank,
    HindsightItem,
    HindsightPage,
    HindsightRecallBody,
    HindsightRetainBody,
)
from reverie_services.compat.calls import CompatCall


async def answer(call: CompatCall) -> Any:
    """The answer to one call."""
    match call.method, call.path.strip("/").split("/"):
        case "PUT" | "PATCH", ["v1", "default", "banks", bank]:
            return _bank(bank, call.parse_body(HindsightBank))
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
    items = [_item(item, bank) for item in call.parse_body(HindsightRetainBody).items or []]
    if not items:
        raise InvalidInput("items", "holds nothing to retain")
    await call.remember(items)
    return {"success": True, "bank_id": bank, "items_count": len(items), "async": False}


def _item(item: HindsightItem, bank: str) -> dict[str, Any]:
    content = item.content
    if isinstance(content, list):
        if any(block.type != "text" for block in content):
            raise InvalidInput("items", "hold a picture: attach it by /v1/memories/{id}/pictures")
        if any(block.text is None for block in content):
            raise InvalidInput("items", "hold a block of content without text")
        content = "\n".join(block.text or "" for block in content)
    known = {
        "context": item.context, "document_id": item.document_id, "timestamp": item.timestamp
    }  # fmt: skip
    return {
        "content": content,
        "scope": f"project/{bank}",
        "tags": item.tags or [],
        "metadata": {
            **(item.metadata or {}),
            **{name: value for name, value in known.items() if value},
        },
    }


async def _recall(call: CompatCall, bank: str) -> Any:
    asked = call.parse_body(HindsightRecallBody)
    body = {
        "query": asked.query,
        "scopes": [f"project/{bank}"],
        "budget_tokens": asked.max_tokens or 4096,
        **({"tags": asked.tags} if asked.tags else {}),
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
    part = call.parse_query(HindsightPage)
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
    page = found[part.offset : part.offset + part.limit]
    return {"items": page, "total": len(found), "limit": part.limit, "offset": part.offset}


def _bank(bank: str, body: HindsightBank) -> dict[str, Any]:
    """A bank need not be created; its personality traits are not stored."""
    traits = dict.fromkeys(("skepticism", "literalism", "empathy"), 3)
    name = body.name or bank
    return {"bank_id": bank, "name": name, "disposition": traits, "mission": ""}
