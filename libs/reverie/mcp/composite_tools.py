"""Tools that make several REST calls: status, task updates, recall, and forgetting by key."""

from __future__ import annotations

from reverie.contracts.problems import problem_from_error
from reverie.domain.core.errors import NotFound
from reverie.mcp.rest_calls import (
    RestCallError,
    RestClient,
    call_rest,
    invalid_argument,
    quote_argument,
)
from reverie.mcp.tool_definition import Arguments, Body, RestCall

_STALE_LIMIT = 5


async def get_status(rest: RestClient, arguments: Arguments) -> Body:
    """The tool `status`: readiness, graph statistics, stale memories."""
    if arguments:
        raise invalid_argument(next(iter(arguments)), "unknown field: status takes none")
    status, body = await rest("GET", "/ready")
    checks = dict(body.get("checks", {})) if isinstance(body, dict) else {}
    graph = await call_rest(rest, "GET", "/v1/graph/stats")
    try:
        stale = (await call_rest(rest, "GET", "/v1/stale", {"limit": _STALE_LIMIT}))["items"]
    except RestCallError as error:
        stale, checks["staleness"] = [], {"ok": False, "hint": error.problem.detail}
    stale_memories = [{"id": item["memory"]["id"], "grade": item["grade"]} for item in stale]
    return {"ready": status == 200, "checks": checks, "graph": graph, "stale": stale_memories}


async def update_task(rest: RestClient, arguments: Arguments) -> Body:
    """The tool `task_update`: sets dependencies, then the claim, then the state."""
    task = quote_argument(arguments, "id")
    agent = {"agent": arguments["agent"]} if arguments.get("agent") else {}
    allowed = {"id", "state", "agent", "depends_on", "claim_seconds"}
    for name in arguments.keys() - allowed:
        raise invalid_argument(name, f"unknown field; there are {sorted(allowed)}")
    body: Body | None = None
    depends_on = arguments.get("depends_on") or []
    if depends_on:
        task_id = (await call_rest(rest, "GET", f"/v1/memories/{task}"))["id"]
        for dependency in depends_on:
            link = {"from": task_id, "to": dependency, "type": "depends_on"}
            await call_rest(rest, "POST", "/v1/links", None, link)
    if arguments.get("claim_seconds") is not None:
        claim = {**agent, "seconds": arguments["claim_seconds"]}
        body = await call_rest(rest, "POST", f"/v1/tasks/{task}/claim", None, claim)
    if arguments.get("state") is not None:
        move = {**agent, "state": arguments["state"]}
        body = await call_rest(rest, "PATCH", f"/v1/tasks/{task}", None, move)
    if body is None and not depends_on:
        raise invalid_argument("state", "is required, or depends_on or claim_seconds")
    return body or await call_rest(rest, "GET", f"/v1/memories/{task}")


async def recall(rest: RestClient, arguments: Arguments) -> Body:
    """The tool `recall`: of a long memory, the sentences around what matched.

    Ten whole documents would be more than a host takes as one result.
    """
    answer = await RestCall("POST", "/v1/recall")(rest, arguments)
    for memory in answer["memories"]:
        if len(memory["snippet"]) < len(" ".join(memory["content"].split())):
            memory |= {"content": memory["snippet"], "is_cut": True}
    return answer


async def forget(rest: RestClient, arguments: Arguments) -> Body:
    """The tool `forget`: forgets a memory by its id, or the active one with a key."""
    for name in arguments.keys() - {"id", "key", "scope"}:
        raise invalid_argument(name, "unknown field; there are id, key and scope")
    key = arguments.get("key")
    if key is None:
        memory = quote_argument(arguments, "id")
    elif isinstance(key, str) and key.strip():
        memory = await _find_by_key(rest, key, arguments.get("scope"))
    else:
        raise invalid_argument("key", "input should be a text that is not empty")
    return await call_rest(rest, "DELETE", f"/v1/memories/{memory}")


async def _find_by_key(rest: RestClient, key: str, scope: str | None) -> str:
    scope_filter = {"scope": scope} if scope else {}
    query = {"key": key, "status": "active", "limit": 3, **scope_filter}
    matches = (await call_rest(rest, "GET", "/v1/memories", query))["items"]
    if not matches:
        location = f" in {scope}" if scope else ""
        raise RestCallError(
            problem_from_error(NotFound(f"active memory{location} under the key", key))
        )
    if len(matches) > 1:
        scopes = ", ".join(match["scope"] for match in matches)
        raise invalid_argument("scope", f"the key stands in {scopes}: name one")
    return str(matches[0]["id"])
