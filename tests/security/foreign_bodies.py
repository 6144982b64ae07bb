"""Bodies of every call, filled with what belongs to another tenant."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.interfaces.openapi_examples import (
    MEMORY_ID,
    OTHER_MEMORY_ID,
    REQUEST_EXAMPLES,
    SESSION_ID,
)

WORD = "zanzibarwren"
SAME = "both tenants keep this very sentence"


@dataclass(frozen=True)
class Theirs:
    """What belongs to the other tenant. `marks` stand nowhere but with it."""

    tenant: str
    memory: str
    session: str
    key: str
    change: str
    trace: str
    scope: str
    place: str

    @property
    def ids(self) -> list[str]:
        short = self.memory.replace("-", "")[-8:]
        return [self.memory, short, self.session, self.key, self.change, self.trace]

    @property
    def marks(self) -> list[str]:
        return [WORD, self.tenant, *self.ids]


Bodies = Callable[[Theirs], list[Any]]
SHA = "c" * 40


def change_files(_: Theirs) -> list[Any]:
    commit = {"sha": SHA, "subject": "s", "committed_at": "2099-01-01T00:00:00Z"}
    files = [{"path": "src/wren.py", "status": "deleted"}]
    change = {"project": "shop", "branch": "main", "after": SHA, "commits": [commit]}
    return [{**change, "files": files}]


def _remember(of: Theirs) -> list[Any]:
    edge = [{"to": of.memory, "type": "relates_to"}]
    return [
        {"content": SAME, "scope": "project/shop", "key": "carts"},
        {"content": "linked", "edges": edge},
        {"content": "told", "session": of.session},
    ]


def _tools(of: Theirs) -> list[Any]:
    """Every tool that can name what belongs to the other."""
    one, said = {"id": of.memory}, {"session": of.session}
    named = {
        "recall": {"query": WORD, "session": of.session},
        "task_update": {**one, "state": "done", "depends_on": [of.memory]},
        "link": {"from": of.memory, "to": of.memory, "type": "relates_to"},
        "rollback": {**one, "version": 1},
        "feedback": {**one, "verdict": "discard"},
        "sessions": {"project": "shop"},
        "impact": {"path": "src/wren.py"},
        **dict.fromkeys(("forget", "history", "subgraph", "confirm", "unlink"), one),
        **dict.fromkeys(("context", "dream"), said),
        **{key: {} for key in ("stale", "status")},
        "more": {"operation": "list_turns", "arguments": {"id": of.session}},
    }
    calls = [("tools/call", {"name": n, "arguments": given}) for n, given in named.items()]
    for name, given in (("recall", {"query": WORD}), ("list_memories", {})):
        sent = {"operation": name, "arguments": given}
        calls.append(("tools/call", {"name": "more", "arguments": sent}))
    calls.append(("resources/read", {"uri": f"reverie://memory/{of.memory}"}))
    calls.append(("prompts/get", {"name": "session_handoff", "arguments": {"session": of.session}}))
    return [{"jsonrpc": "2.0", "id": 1, "method": how, "params": params} for how, params in calls]


_SPECIAL_BODIES: dict[str, Bodies] = {
    "POST /mcp": _tools,
    "POST /v1/remember": _remember,
    "POST /v1/remember/batch": lambda of: [{"items": _remember(of)}],
    "POST /v1/sessions/start": lambda of: [
        {"agent": "ann", "project": "shop", "external_id": "chat"}
    ],
    "POST /v1/sessions/{id}/correct": lambda of: [{"diff": f"No longer {WORD}, use jays"}],
    "PATCH /v1/projects/{name}/settings": lambda of: [
        {"context": {"hot": 700}, "dream": {"turns": 7}}
    ],
    "PATCH /v1/admin/settings": lambda of: [{"dream": {"turns": 7}}],
    "POST /v1/predict": lambda of: [{"session": of.session, "edited": ["src/wren.py"]}],
    "POST /v1/recall/projects": lambda of: [{"query": WORD}],
    "POST /v1/dream": lambda of: [{"session": of.session}, {"scope": "project/shop"}],
    "POST /v1/recall": lambda of: [
        {"query": WORD, "include": ["turns"]},
        {"query": WORD, "session": of.session},
        {"query": WORD, "scopes": ["project/shop", of.scope], "include": ["archived", "turns"]},
    ],
    "POST /v1/preflow": lambda of: [
        {"session": of.session, "query": WORD},
        {"session": of.session, "query": WORD, "files": ["src/wren.py"], "include_seen": True},
    ],
    "POST /v1/git/changes": change_files,
    "DELETE /v1/admin/tenant": lambda of: [{"confirm": of.tenant}],
    "POST /v1/links": lambda of: [{"from": of.memory, "to": of.session, "type": "relates_to"}],
    "POST /v1/memories/forget": lambda of: [{"ids": [of.memory]}, {"scope": of.scope}],
    "POST /v1/facts": lambda of: [
        {
            "topic": "birds",
            "statement": SAME,
            "confidence": "high",
            "verified": "2026-01-01",
            "scope": of.scope,
            "session": of.session,
        }
    ],
    "POST /v1/documents": lambda of: [
        {"collection": "log", "documents": [{"key": "a", "value": 1}], "scope": of.scope}
    ],
    "POST /v1/documents/delete": lambda of: [{"collection": "log", "scope": of.scope}],
    "POST /v1/import": lambda of: [
        {"type": "memory", "id": of.memory, "scope": "global", "content": "x", "kind": "context"}
    ],
}


def build_bodies(route: str, of: Theirs) -> list[Any]:
    """Bodies that name another tenant's memory, session or scope.

    Those of other routes are their examples, with the other's ids in place of those made up.
    """
    if route in _SPECIAL_BODIES:
        return _SPECIAL_BODIES[route](of)
    text = json.dumps(REQUEST_EXAMPLES[route])
    for example, id in ((MEMORY_ID, of.memory), (OTHER_MEMORY_ID, of.memory)):
        text = text.replace(example, id)
    return [json.loads(text.replace(SESSION_ID, of.session))]
