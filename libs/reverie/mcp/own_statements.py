"""Tells which calls store what users say of themselves, which belongs to no project."""

from __future__ import annotations

from reverie.domain.core.errors import ReverieError
from reverie.domain.core.kinds import parse_kind
from reverie.domain.extraction.content_checks import classify_kind
from reverie.domain.extraction.own_memories import is_own_preference
from reverie.mcp.tool_definition import Arguments


def is_own_statement(tool: str, arguments: Arguments, project: str | None) -> bool:
    """Whether a call of `remember` without a scope stores a preference of the user."""
    content = arguments.get("content")
    if tool != "remember" or arguments.get("scope") or not isinstance(content, str):
        return False
    try:
        kind = parse_kind(str(arguments["kind"])) if arguments.get("kind") else None
    except ReverieError:
        return False
    return is_own_preference(kind or classify_kind(content), content, (), project)
