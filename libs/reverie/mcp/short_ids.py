"""Resolves short ids in the arguments of a tool: bodies of REST calls name ids in full."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reverie.mcp.rest_calls import (
    RestCallError,
    RestClient,
    call_rest,
    invalid_argument,
    rename_fields,
)
from reverie.mcp.tool_definition import Arguments

_SHORT_ID = re.compile(r"[0-9a-fA-F-]{8,35}")
MAX_IDS = 50
"""Each id of a list takes a call or two, within one message."""
_MEMORY_FIELDS = frozenset({"from", "to", "depends_on"})


async def resolve_short_ids(rest: RestClient, arguments: Arguments) -> dict[str, Any]:
    """The arguments with full ids of memories and sessions.

    Raises `RestCallError` if a short id belongs to none or to several.
    """
    return {name: await _resolve(rest, name, value) for name, value in arguments.items()}


async def _resolve(rest: RestClient, name: str, value: Any) -> Any:
    if name in ("arguments", "edges") and isinstance(value, Mapping):
        return await resolve_short_ids(rest, value)
    if name in ("edges", "depends_on") and isinstance(value, list):
        if len(value) > MAX_IDS:
            raise invalid_argument(name, f"has too many items: at most {MAX_IDS}")
        return [await _resolve(rest, name, item) for item in value]
    if not isinstance(value, str) or not _SHORT_ID.fullmatch(value):
        return value
    try:
        if name in _MEMORY_FIELDS:
            return (await call_rest(rest, "GET", f"/v1/memories/{value}"))["id"]
        if name == "session":
            query = {"session": value, "limit": 1}
            found = (await call_rest(rest, "GET", "/v1/sessions", query))["items"]
            return found[0]["id"] if found else value
    except RestCallError as error:
        raise rename_fields(error, {name: "id"} if name in _MEMORY_FIELDS else {}) from None
    return value
