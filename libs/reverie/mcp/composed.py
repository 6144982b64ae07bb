"""Tools that are several REST calls: the state of everything, and a task with what it waits for."""

from __future__ import annotations

from reverie.contracts.problems import problem_of
from reverie.domain.errors import Invalid
from reverie.mcp.rest import Failed, Rest, ask, part
from reverie.mcp.tool import Arguments, Body

_STALE_SHOWN = 5


async def status(rest: Rest, given: Arguments) -> Body:
    """`status`: whether it can work, the graph in numbers, what may be stale."""
    if given:
        raise Failed(problem_of(Invalid(next(iter(given)), "unknown field: status takes none")))
    ready, checks = await _ready(rest)
    graph = await ask(rest, "GET", "/v1/graph/stats")
    try:
        stale = (await ask(rest, "GET", "/v1/stale", {"limit": _STALE_SHOWN}))["items"]
    except Failed as failed:
        stale, checks["staleness"] = [], {"ok": False, "hint": failed.problem.detail}
    shown = [{"id": one["memory"]["id"], "grade": one["grade"]} for one in stale]
    return {"ready": ready, "checks": checks, "graph": graph, "stale": shown}


async def _ready(rest: Rest) -> tuple[bool, Body]:
    code, body = await rest("GET", "/ready")
    checks = body.get("checks", {}) if isinstance(body, dict) else {}
    return code == 200, dict(checks)


async def task_update(rest: Rest, given: Arguments) -> Body:
    """`task_update`: what it waits for, who takes it, where it stands; in that order."""
    task, agent = part(given, "id"), _agent(given)
    known = {"id", "state", "agent", "depends_on", "claim_seconds"}
    for name in given.keys() - known:
        raise Failed(problem_of(Invalid(name, f"unknown field; there are {sorted(known)}")))
    body: Body | None = None
    waits_for = given.get("depends_on") or []
    if waits_for:
        own = (await ask(rest, "GET", f"/v1/memories/{task}"))["id"]
        for other in waits_for:
            link = {"from": own, "to": other, "type": "depends_on"}
            await ask(rest, "POST", "/v1/links", None, link)
    if given.get("claim_seconds") is not None:
        claim = {**agent, "seconds": given["claim_seconds"]}
        body = await ask(rest, "POST", f"/v1/tasks/{task}/claim", None, claim)
    if given.get("state") is not None:
        move = {**agent, "state": given["state"]}
        body = await ask(rest, "PATCH", f"/v1/tasks/{task}", None, move)
    if body is None and not waits_for:
        raise Failed(problem_of(Invalid("state", "is required, or depends_on or claim_seconds")))
    return body or await ask(rest, "GET", f"/v1/memories/{task}")


def _agent(given: Arguments) -> Body:
    return {"agent": given["agent"]} if given.get("agent") else {}
