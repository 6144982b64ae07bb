"""What a reader of one scope is told does not depend on what stands in scopes it may not read.

The routes are read from the services. Every reading call is answered once before other scopes are
filled with the same words, files and entities, and once after; the answers must be equal.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from reverie.domain.access.principals import KeyRole
from reverie.runtime.http.routes import Route
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.security.test_tenant_isolation import PARAMETERS as ISOLATION_PARAMETERS
from tests.security.test_tenant_isolation import PLAIN, REPEATS, UNKNOWN
from tests.support.stack import VAULT_KEY, Reply, Stack, eventually, running_stack
from tests.support.tables import idle, run, value

HOME = "project/harbour"
HIDDEN = ("project/harbour/feature/dredge", "project/mill", "agent/bob", "global")
"""Scopes that readers of `HOME` may not read: below it, beside it, an agent's, and of all."""
LONG_AGO = datetime.now(UTC) - timedelta(days=40, hours=5)
TEXTS = (
    ("decision", "The crane queue uses postgres, since redis lost barges; see src/crane.py."),
    ("bug", "The crane queue deadlocked because src/lock.py took two locks of postgres."),
    ("lesson", "Barges are counted twice before noon, in src/lock.py and src/crane.py."),
    ("convention", "Every barge handler in src/crane.py is idempotent."),
    ("task", "Move the crane queue of postgres to partitions."),
    ("context", "Crane drivers rest while redis restarts."),
    ("preference", "Name barges after rivers, never after people."),
)
QUESTIONS = (
    "Why does the crane queue use postgres?",
    "What deadlocked, and which locks of src/lock.py?",
    "When is lunch?",
)
PARAMETERS = {
    "session": "{session}",
    "project": "harbour",
    "scope": HOME,
    "path": "src/crane.py",
    "files": "src/crane.py",
    "tag": "queue",
    "collection": "barges",
    "prefix": "b",
    "order": "newest",
    "key": "crane-queue",
    "agent": "ann",
    "actor": "ann",
    "subject": "{memory}",
    "entity": "postgres",
    "topic": "barges",
    "status": "superseded",
    "kind": "entity",
    "as_of": "{as_of}",
    "valid_at": "{as_of}",
    "depth": "3",
    "limit": "2",
    "format": "markdown",
}
VARIABLES = {
    "memories": ("memory", "bug", "edited", "lone"),
    "dreams": ("dream",),
    "sessions": ("session",),
    "skills": ("skill",),
    "traces": ("trace",),
    "vault": ("entry",),
    "projects": ("project",),
}
"""Whose id stands in a path, by the part before it."""
OF_THE_PROCESS = {"/metrics", "/health", "/ready", "/docs", "/docs/redoc.js", "/openapi.json"}
ENDLESS = {"/v1/events"}
OF_THE_MOMENT = {
    *("trace_id", "at", "milliseconds", "timings", "accessed_at", "access_count", "next"),
    *("usage", "instance", "recalls"),
}
"""Fields that differ from call to call: times, uses, places that are sealed anew, and what readers
have asked in a session."""
ENDS = ("memory", "bug", "edited", "lone")
"""Memories of the own scope to which edges lead."""
Answers = dict[str, Any]


class Readers(NamedTuple):
    """Keys that may read `HOME` alone: of nobody, of an agent, and an administrator's."""

    plain: str
    of_agent: str
    admin: str


@pytest.fixture
async def stack(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    """A system of the test's own, which computes ranks at once."""
    settings = {"vault_key": VAULT_KEY, "scheduler_interval": 0.2}
    async with running_stack(database, nats_url, model_home(), **settings) as made:
        yield made


async def test_every_reading_call_answers_the_same_whatever_other_scopes_hold(
    stack: Stack,
) -> None:
    # Uses of a memory count from the next hour on: a comparison across two hours says nothing.
    for _ in range(2):
        hour = datetime.now(UTC).hour
        differences = await _compare(stack.apart())
        if datetime.now(UTC).hour == hour:
            break
    assert differences == []


async def _compare(stack: Stack) -> list[str]:
    """Where the answers differ before and after other scopes are filled."""
    readers = Readers(
        *(
            stack.key_of(reads=(HOME,), writes=(HOME,), role=role, agent=agent)
            for role, agent in (
                (KeyRole.READER, None),
                (KeyRole.WRITER, "ann"),
                (KeyRole.ADMIN, None),
            )
        )
    )
    own = await _fill(stack, HOME, "ann", "harbour")
    await _settled(stack)
    own["trace"] = (await stack.post("/v1/recall", {"query": QUESTIONS[0]}))["trace_id"]
    before = await _read_all(stack, readers, own)
    assert TEXTS[0][1] in json.dumps(before)
    hidden = [
        await _fill(stack, scope, "bob", project)
        for scope, project in zip(HIDDEN, ("harbour", "mill", None, None), strict=True)
    ]
    await stack.call("PUT", "/v1/projects/harbour/links/mill", {})
    for ids, scope in zip(hidden, HIDDEN, strict=True):
        await _surround(stack, ids, scope, own)
    await _settled(stack)
    after = await _read_all(stack, readers, own)
    for ids in hidden:
        await _check_unknown(stack, readers.plain, ids)
    return [
        f"{name}{place}"
        for name, answer in before.items()
        for place in _find_differences(answer, after[name])
    ]


async def _fill(stack: Stack, scope: str, agent: str, project: str | None) -> dict[str, str]:
    """Puts some of everything into a scope; returns the ids."""
    made = await _remember_all(stack, scope)
    start = {"agent": agent, "external_id": str(uuid4()), "project": project or "none"}
    if scope.endswith("/dredge"):
        start["branch"] = "dredge"
    made["session"] = (await stack.post("/v1/sessions/start", start))["session"]
    said = [text for _, text in TEXTS] + ["Decision: the crane queue stays in postgres."]
    turns = [{"role": "user" if n % 2 else "assistant", "content": text}
             for n, text in enumerate(said)]  # fmt: skip
    await stack.post("/v1/turns", {"session": made["session"], "turns": turns})
    await stack.post(f"/v1/sessions/{made['session']}/end", {})
    ended = await stack.post("/v1/dream", {"session": made["session"]})

    async def dreamt() -> Any:
        dreams = await stack.get(f"/v1/dreams?scope={ended['scope']}")
        return [one for one in dreams["items"] if one["status"] == "done"]

    made["dream"] = (await eventually(dreamt))[0]["id"]
    # Older than the change below, and old enough that a memory without edges decays faster.
    aged = (
        "update memory set created = created - interval '45 days' where tenant = %s and scope = %s"
    )
    run(stack.admin_url, aged, stack.number(), scope)
    if project is not None:
        await _push(stack, project, start.get("branch", "main"))
    return made


async def _remember_all(stack: Stack, scope: str) -> dict[str, str]:
    ids = []
    for kind, text in TEXTS:
        body = {"content": text, "kind": kind, "scope": scope, "tags": ["queue"]}
        body["valid_from"] = LONG_AGO.isoformat()
        ids.append((await stack.post("/v1/remember", body))["id"])
    keyed = {"content": "The crane queue holds 40 barges.", "key": "crane-queue", "scope": scope}
    edited = (await stack.post("/v1/remember", keyed))["id"]
    await stack.call("PATCH", f"/v1/memories/{edited}", {"content": "It holds 50 barges."})
    as_of = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    for end in ids[1:]:
        link = {"from": ids[0], "to": end, "type": "relates_to", "weight": 0.7}
        await stack.post("/v1/links", link)
    lone = {"content": "Lunch is at noon.", "kind": "context", "scope": scope}
    skill = {"content": "Ship {barge}", "kind": "skill", "scope": scope, "steps": ["Load {barge}"]}
    fact = {"topic": "barges", "statement": "Barges carry 40 tons of gravel.", "scope": scope}
    fact |= {"confidence": "high", "verified": "2026-01-01"}
    documents = [{"key": uuid4().hex, "value": "crane"}]
    log = {"collection": "barges", "documents": documents, "scope": scope}
    await stack.post("/v1/documents", log)
    entry = f"entry-{uuid4().hex[:6]}"
    await stack.call("PUT", f"/v1/vault/{entry}?scope={scope}", {"value": {"host": "crane"}})
    return {
        "memory": ids[0],
        "bug": ids[1],
        "edited": edited,
        "lone": (await stack.post("/v1/remember", lone))["id"],
        "skill": (await stack.post("/v1/remember", skill))["id"],
        "fact": (await stack.post("/v1/facts", fact))["id"],
        "entry": entry,
        "as_of": as_of,
        "project": "harbour",
    }


async def _surround(stack: Stack, ids: dict[str, str], scope: str, own: dict[str, str]) -> None:
    """More of the same words around a memory, and edges from it to those of the own scope."""
    edge = {"to": ids["memory"], "type": "depends_on"}
    items = [
        {"content": f"{n} {text}", "kind": kind, "scope": scope, "edges": [edge]}
        for n in range(3)
        for kind, text in TEXTS
    ]
    await stack.post("/v1/remember/batch", {"items": items})
    for kind, end in product(("relates_to", "depends_on", "led_to", "contradicts"), ENDS):
        await stack.post("/v1/links", {"from": ids["memory"], "to": own[end], "type": kind})


async def _push(stack: Stack, project: str, branch: str) -> None:
    """A change of two files, by which memories of that project and branch are in doubt."""
    sha = uuid4().hex + "0" * 8
    commit = {"sha": sha, "subject": "Rework the crane", "committed_at": LONG_AGO.isoformat()}
    files = [{"path": path, "status": "deleted"} for path in ("src/crane.py", "src/lock.py")]
    change = {"project": project, "branch": branch, "after": sha, "default_branch": "main"}
    await stack.post("/v1/git/changes", {**change, "commits": [commit], "files": files})


async def _settled(stack: Stack) -> None:
    """Nothing waits, and ranks are computed."""
    number = stack.number()

    async def settled() -> bool:
        unranked = "select count(*) from edge_change where tenant = %s"
        return idle(stack.admin_url, number) and not value(stack.admin_url, unranked, number)

    await eventually(settled)


async def _read_all(stack: Stack, readers: Readers, own: dict[str, str]) -> Answers:
    """What every reading call answers: to a plain key with each parameter, to an admin without."""
    answers = await _ask(stack, readers.plain, own, QUESTIONS)
    bound = await _ask(stack, readers.of_agent, own, QUESTIONS[:1])
    answers.update({f"agent: {name}": answer for name, answer in bound.items()})
    for service, routes in stack.routes.items():
        for route in routes:
            if route.method != "GET" or route.path in OF_THE_PROCESS | ENDLESS:
                continue
            if route.name in REPEATS:
                continue  # It lists what this reader has asked.
            for path in _paths(route, own):
                answers[path] = await _get(stack, stack.urls[service] + path, readers.plain)
                if "&" not in path:
                    url = stack.urls[service] + path
                    answers[f"admin: {path}"] = await _get(stack, url, readers.admin)
    return answers


async def _get(stack: Stack, url: str, key: str) -> Any:
    """The status and the body of a GET: JSON, lines of it, Markdown, or an archive."""
    async with stack.http.get(url, headers={"Authorization": f"Bearer {key}"}) as answer:
        text = (await answer.read()).decode("latin-1")
        is_json = "json" in answer.content_type
        lines = text.splitlines() if answer.content_type == "application/x-ndjson" else [text]
        body = [_stable(json.loads(line)) for line in lines] if is_json else text
        return [answer.status, body, answer.headers.get("ETag")]


def _paths(route: Route, own: dict[str, str]) -> Iterator[str]:
    """The path with ids of the own scope, and with each parameter."""
    fields = set(route.query.model_fields if route.query else ())
    assert fields <= PLAIN | set(ISOLATION_PARAMETERS), f"{route.name} {UNKNOWN}"
    head, brace, tail = route.path.partition("{")
    rest = tail.partition("}")[2]
    names: Sequence[str] = (
        VARIABLES.get(head.rstrip("/").rpartition("/")[2], ()) if brace else ("",)
    )
    required = "&".join(
        f"{name}={PARAMETERS[name]}"
        for name, field in (route.query.model_fields if route.query else {}).items()
        if field.is_required()
    )
    for name in names:
        path = f"{head}{own[name]}{rest}" if brace else head
        yield f"{path}?{required}"
        for field in sorted(fields & set(PARAMETERS)):
            yield f"{path}?{required}&{field}={PARAMETERS[field].format_map(own)}"


async def _ask(stack: Stack, key: str, own: dict[str, str], questions: Sequence[str]) -> Answers:
    """What recalls answer, with their traces; by REST, and by the tools of an agent."""
    answers: Answers = {}
    for question in questions:
        ways: list[dict[str, Any]] = [
            {"include": ["turns", "archived"]},
            {"as_of": own["as_of"]},
            {"tags": ["queue"]},
            {"files": ["src/crane.py"]},
            {"scopes": [HOME, "project/harbour/*"]},
            {"project": "harbour"},
            {"session": own["session"]},
        ]
        for more in ways if question == questions[0] else ways[:2]:
            asked = {"query": question, "limit": 50, "depth": 3, **more}
            name = json.dumps(asked)
            reply = await stack.call("POST", "/v1/recall", asked, key)
            answers[name] = _told(reply)
            if reply.status == 200:
                trace = await stack.call("GET", f"/v1/traces/{reply.body['trace_id']}", key=key)
                answers[f"trace of {name}"] = _told(trace)
        reply = await stack.call("POST", "/v1/recall/projects", {"query": question}, key)
        answers[f"projects {question}"] = _told(reply)
        call = {"name": "recall", "arguments": {"query": question}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        answers[f"tool {question}"] = _told(await stack.call("POST", "/mcp", message, key))
    return answers


def _told(reply: Reply) -> Any:
    """What is told, less what differs from call to call."""
    return [reply.status, _stable(reply.body), reply.headers.get("ETag")]


def _stable(body: Any) -> Any:
    if isinstance(body, dict):
        dropped = {*OF_THE_MOMENT, *(["id"] if "trace_id" in body else [])}
        return {k: _stable(v) for k, v in body.items() if k not in dropped}
    return [_stable(one) for one in body] if isinstance(body, list) else body


def _find_differences(one: Any, other: Any) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from (f".{key}{place}" for place in _find_differences(one[key], other[key]))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from (f"[{number}]{place}" for place in _find_differences(left, right))
    elif one != other:
        yield f": {one!r:.300} / {other!r:.300}"


async def _check_unknown(stack: Stack, key: str, hidden: dict[str, str]) -> None:
    """An id of a hidden scope is as unknown as one that does not exist."""
    for service, routes in stack.routes.items():
        for route in (one for one in routes if one.method == "GET" and "{id}" in one.path):
            url = stack.urls[service] + route.path
            names = [n for part in route.path.split("/") for n in VARIABLES.get(part, ())]
            if not names or names[0] not in hidden:
                continue  # Traces and keys are of no scope.
            known = await stack.call("GET", url.replace("{id}", hidden[names[0]]), key=key)
            unknown = await stack.call("GET", url.replace("{id}", str(uuid4())), key=key)
            assert known.status == unknown.status, (route.name, known)
            assert known.body.get("code") == unknown.body.get("code"), (route.name, known)
