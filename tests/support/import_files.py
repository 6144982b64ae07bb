"""Lines of files to import, and the request that sends them."""

from __future__ import annotations

import json
from typing import Any

from reverie.domain.core.ids import new_id
from reverie_services.recall.routes.export import JSONL_HEADER
from tests.support.stack import Stack

AT = "2026-01-02T03:04:05+00:00"
LATER = "2026-02-02T03:04:05+00:00"
FAR = "2999-01-01T00:00:00+00:00"
Line = dict[str, Any]


def memory_line(content: str = "Carts expire", **fields: Any) -> Line:
    fixed: Line = {"scope": "project/shop", "kind": "context", "tier": "warm", "version": 3}
    fixed |= {"status": "active", "confidence": 0.8, "pinned": False, "source": "remember"}
    fixed |= {"type": "memory", "id": str(new_id()), "created": AT, "updated": AT}
    return {**fixed, "content": content, **fields}


def version_line(memory: Line, version: int = 1, **fields: Any) -> Line:
    fixed: Line = {"type": "memory_version", "memory": memory["id"], "version": version}
    fixed |= {"content": "Carts expired", "status": "active", "reason": "edited"}
    return {**fixed, "known_from": AT, "known_to": LATER, **fields}


def stale_mark(**fields: Any) -> Line:
    fixed: Line = {"commit": "a" * 40, "path": "src/a.ts", "grade": "stale", "score": 0.5}
    fixed |= {"change": "modified", "subject": "Move", "committed_at": AT, "created": AT}
    return {**fixed, "event": str(new_id()), **fields}


def session_line(**fields: Any) -> Line:
    fixed: Line = {"type": "session", "id": str(new_id()), "agent": "ann", "scope": "project/shop"}
    return {**fixed, "started": AT, "appended": AT, **fields}


def export_file(*records: Line) -> bytes:
    return "\n".join([JSONL_HEADER, *map(json.dumps, records)]).encode()


async def send_import(
    stack: Stack,
    body: Any,
    query: str = "",
    key: str | None = None,
    kind: str = "application/x-ndjson",
) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key or stack.key}", "Content-Type": kind}
    url = f"{stack.url}/v1/import{query}"
    async with stack.http.post(url, data=body, headers=headers) as answer:
        return answer.status, await answer.json()


def edge_line(**fields: Any) -> Line:
    ends: Line = {"type": "edge", "id": str(new_id()), "src": str(new_id()), "dst": str(new_id())}
    return {**ends, "kind": "led_to", "weight": 0.5, "known_from": AT, **fields}
