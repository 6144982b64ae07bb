"""The keyed face: memories saved, listed and deleted by a short key, as a notebook."""

from __future__ import annotations

from typing import Any

from reverie.contracts.problems import problem_of
from reverie.domain.errors import Invalid, NotFound
from reverie.mcp.rest import Failed, Rest, ask, renamed, several
from reverie.mcp.tool import Arguments, Body

_KEY = "key"


async def search(rest: Rest, given: Arguments) -> Body:
    """`memory_search`: fragments with key, score, type, and which search found them."""
    left = {name: one for name, one in given.items() if name not in {"query", "max_results"}}
    sent = {"query": given.get("query"), "limit": given.get("max_results", 5), **left}
    try:
        found = await ask(rest, "POST", "/v1/recall", None, sent)
    except Failed as failed:
        raise renamed(failed, {"max_results": "limit"}) from None
    return {
        "results": [_fragment(one) for one in found["memories"]],
        "search_mode": found["search_mode"],
        "degraded": found["degraded"],
    }


def _fragment(one: dict[str, Any]) -> Body:
    arms = one.get("arms") or {}
    return {
        "id": one["id"],
        "key": one.get("key"),
        "text": one["snippet"],
        "score": one["score"],
        "type": one["kind"],
        "scope": one["scope"],
        "is_active": one["status"] == "active",
        "source": "keyword" if set(arms) <= {"words"} else "hybrid",
        "stale_reason": one.get("stale_reason"),
    }


async def delete(rest: Rest, given: Arguments) -> Body:
    """`memory_delete`: forgets what is active under a key."""
    key = given.get(_KEY)
    if not isinstance(key, str) or not key.strip():
        raise Failed(problem_of(Invalid(_KEY, "is required")))
    place = {"scope": given["scope"]} if given.get("scope") else {}
    query = {_KEY: key, "status": "active", "limit": 3, **place}
    found = (await ask(rest, "GET", "/v1/memories", query))["items"]
    if not found:
        where = f" in {given['scope']}" if place else ""
        raise Failed(problem_of(NotFound(f"active memory{where} under the key", key)))
    if len(found) > 1:
        scopes = several([one["scope"] for one in found])
        raise Failed(problem_of(Invalid("scope", f"the key stands in {scopes}: name one")))
    return await ask(rest, "DELETE", f"/v1/memories/{found[0]['id']}")
