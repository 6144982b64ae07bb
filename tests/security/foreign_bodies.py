"""Bodies of every call, filled with what belongs to another tenant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


BODIES: dict[str, Bodies] = {
    "POST /mcp": _tools,
    "POST /v1/remember": _remember,
    "POST /v1/remember/batch": lambda of: [{"items": _remember(of)}],
    "POST /v1/turns": lambda of: [
        {"session": of.session, "turns": [{"role": "user", "content": "x"}]}
    ],
    "POST /v1/sessions/start": lambda of: [
        {"agent": "ann", "project": "shop", "external_id": "chat"}
    ],
    "POST /v1/sessions/{id}/end": lambda of: [{}],
    "POST /v1/sessions/{id}/correct": lambda of: [{"diff": f"No longer {WORD}, use jays"}],
    "POST /v1/predict": lambda of: [{"session": of.session, "edited": ["src/wren.py"]}],
    "POST /v1/recall/projects": lambda of: [{"query": WORD}],
    "PUT /v1/projects/{name}/links/{linked}": lambda of: [{"discoverable": True}],
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
    **dict.fromkeys(
        (f"PUT /v1/git/webhooks/{forge}/{{project}}" for forge in ("github", "gitlab")),
        lambda of: [{"secret": "a-secret-of-mine"}],
    ),
    "POST /v1/git/anchors": lambda of: [
        {
            "project": "shop",
            "anchors": [{"memory": of.memory, "git": {"lines": {"src/wren.py": [[1, 2]]}}}],
        }
    ],
    **dict.fromkeys(
        ("POST /v1/admin/keys", "PATCH /v1/admin/keys/{id}"), lambda of: [{"label": "mine"}]
    ),
    "POST /v1/admin/keys/{id}/rotate": lambda of: [{}],
    "DELETE /v1/admin/tenant": lambda of: [{"confirm": of.tenant}],
    "POST /v1/links": lambda of: [{"from": of.memory, "to": of.session, "type": "relates_to"}],
    "PATCH /v1/memories/{id}": lambda of: [{"content": "changed"}],
    "POST /v1/memories/{id}/pictures": lambda of: [{"data": "R0lGODlhAQABAAAAACw="}],
    "POST /v1/memories/forget": lambda of: [{"ids": [of.memory]}, {"scope": of.scope}],
    "POST /v1/memories/{id}/erase": lambda of: [{}],
    "POST /v1/memories/{id}/rollback": lambda of: [{"version": 1}],
    "POST /v1/memories/{id}/feedback": lambda of: [{"verdict": "discard"}],
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
    "PATCH /v1/tasks/{id}": lambda of: [{"state": "done", "agent": "bob"}],
    "POST /v1/tasks/{id}/claim": lambda of: [{"agent": "bob"}],
    "POST /v1/tasks/{id}/release": lambda of: [{"agent": "ann"}],
    "PUT /v1/vault/{key}": lambda of: [{"value": 1}],
    "POST /v1/documents": lambda of: [
        {"collection": "log", "documents": [{"key": "a", "value": 1}], "scope": of.scope}
    ],
    "POST /v1/documents/delete": lambda of: [{"collection": "log", "scope": of.scope}],
    "PATCH /v1/projects/{name}/settings": lambda of: [
        {"context": {"hot": 700}, "dream": {"turns": 7}}
    ],
    "PATCH /v1/admin/settings": lambda of: [{"dream": {"turns": 7}}],
    "POST /v1/import": lambda of: [
        {"type": "memory", "id": of.memory, "scope": "global", "content": "x", "kind": "context"}
    ],
}
