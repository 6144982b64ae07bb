"""The tools: names, words for a model that has never seen Reverie, and the calls behind them."""

from __future__ import annotations

from reverie.contracts.context import ContextAnswer
from reverie.contracts.dreams import DreamRequested, RequestDream
from reverie.contracts.edits import Confirmed, Edited, Feedback, History, RollBack
from reverie.contracts.git import StalePage
from reverie.contracts.graph import Impact, Linked, NewLink, Subgraph, Unlinked
from reverie.contracts.memories import MemoryPage, Remember, Remembered
from reverie.contracts.recall import Recall, RecallAnswer
from reverie.contracts.sessions import SessionPage
from reverie.contracts.tasks import MoveTask, TaskMoved
from reverie.domain.told_lines import lines
from reverie.mcp import composed, keyed
from reverie.mcp.more import more as operate
from reverie.mcp.schema import field, sent, text, texts, told, whole
from reverie.mcp.tool import ADDS, REMOVES, SETTLES, Body, Hints, One, Tool

KINDS = "convention|decision|bug|spec|task|preference|lesson|context|reference|skill"
EDGES = "caused_by|led_to|part_of|relates_to|depends_on|touches|contradicts"
MINIMAL = ("context", "recall", "remember", "forget", "impact")
"""The tools of the minimal profile."""


def _recalled(body: Body) -> str:
    missing = "".join(f"\n(not asked: {one})" for one in body.get("degraded", ()))
    return lines(body["memories"], "Nothing is known about that.") + missing


def _context(body: Body) -> str:
    return str(body.get("markdown") or "Nothing is known here yet.")


TOOLS = (
    Tool(
        "recall",
        "Search long-term memory by question. Use before non-trivial work and when past "
        "decisions, bugs or conventions may matter. Not for what the code itself shows.",
        sent(
            {
                "query": field(Recall, "query", "plain words; identifiers and paths help"),
                "kinds": field(Recall, "kinds"),
                "scopes": field(Recall, "scopes", "as project/shop"),
                "files": field(Recall, "files"),
                "limit": field(Recall, "limit"),
                "session": field(Recall, "session"),
                "as_of": field(Recall, "as_of", "RFC 3339: what was known then"),
            },
            "query",
        ),
        told(RecallAnswer, "memories"),
        One("POST", "/v1/recall", fixed={"limit": 8}),
        home="project",
        recalls=True,
        text=_recalled,
    ),
    Tool(
        "remember",
        "Store one durable fact: a decision with its why, a convention, a bug's cause, a "
        "preference. Not for secrets, progress chatter or what code or git already says.",
        sent(
            {
                "content": field(Remember, "content", "one fact, understandable alone"),
                "kind": field(Remember, "kind", KINDS),
                "scope": field(Remember, "scope", "as project/shop or global"),
                "key": field(Remember, "key", "one active memory per key"),
                "supersede_reason": field(Remember, "supersede_reason", "to replace the key's"),
                "tags": field(Remember, "tags"),
                "files": texts("paths it is about"),
                "edges": field(Remember, "edges", "[{to: id, type}]"),
                "session": field(Remember, "session"),
            },
            "content",
        ),
        told(Remembered, "id", "status"),
        One("POST", "/v1/remember", inside={"files": "git"}),
        ADDS,
        home="scope",
    ),
    Tool(
        "context",
        "What to know before starting: conventions, tasks, recent decisions, stale warnings. Use "
        "once at session start; then recall.",
        sent(
            {
                "project": text(),
                "session": text(),
                "files": texts("open files"),
            }
        ),
        told(ContextAnswer, "markdown"),
        One("GET", "/v1/context"),
        home="project",
        keeps=("markdown", "tokens", "degraded"),
        text=_context,
    ),
    Tool(
        "forget",
        "Remove a wrong memory for good. If it was only replaced, use remember with its key.",
        sent({"id": text()}, "id"),
        told(Edited, "version"),
        One("DELETE", "/v1/memories/{id}"),
        REMOVES,
    ),
    Tool(
        "link",
        "Connect two memories, so that recall finds one through the other.",
        sent(
            {
                "from": text(),
                "to": text(),
                "type": field(NewLink, "type", EDGES),
            },
            "from",
            "to",
            "type",
        ),
        told(Linked, "id"),
        One("POST", "/v1/links"),
        SETTLES,
    ),
    Tool(
        "unlink",
        "Remove a wrong edge; its id is in recall or subgraph.",
        sent({"id": text()}, "id"),
        told(Unlinked, "id"),
        One("DELETE", "/v1/links/{id}"),
        REMOVES,
    ),
    Tool(
        "subgraph",
        "Memories around one that recall found: why it came to be, what depends on it.",
        sent({"id": text(), "depth": whole("1 to 5")}, "id"),
        told(Subgraph, "nodes"),
        One("GET", "/v1/memories/{id}/subgraph"),
        recalls=True,
    ),
    Tool(
        "impact",
        "What is known that a change of a file or entity would touch. Use before editing.",
        sent({"path": text("in the repository"), "entity": text(), "project": text()}),
        told(Impact, "items"),
        One("GET", "/v1/impact"),
        home="project",
        recalls=True,
    ),
    Tool(
        "status",
        "Whether memory works, and its size. Use when a tool fails.",
        sent({}),
        {
            "type": "object",
            "properties": {"ready": {"type": "boolean"}},
        },
        composed.status,
    ),
    Tool(
        "task_update",
        "Move a task (a memory of kind task), claim it, or say what it waits for.",
        sent(
            {
                "id": text(),
                "state": field(MoveTask, "state"),
                "depends_on": texts("task ids"),
                "claim_seconds": whole("claim it so long"),
                "agent": text(),
            },
            "id",
        ),
        told(TaskMoved, "task"),
        composed.task_update,
        SETTLES,
    ),
    Tool(
        "sessions",
        "List recent sessions with their summaries, to go on where one ended.",
        sent({"project": text(), "limit": whole()}),
        told(SessionPage, "items"),
        One("GET", "/v1/sessions", fixed={"limit": 10}),
        home="project",
        recalls=True,
    ),
    Tool(
        "stale",
        "Memories that commits made doubtful, with evidence. Check, then confirm or forget.",
        sent({"project": text(), "limit": whole()}),
        told(StalePage, "items"),
        One("GET", "/v1/stale", fixed={"limit": 10}),
        home="project",
        recalls=True,
    ),
    Tool(
        "memory_save",
        "Keep a note under a key of your own. Another text for that key needs supersede_reason.",
        sent(
            {
                "key": field(Remember, "key"),
                "content": field(Remember, "content"),
                "type": text("default context"),
                "supersede_reason": field(Remember, "supersede_reason"),
            },
            "key",
            "content",
        ),
        told(Remembered, "id", "status"),
        One("POST", "/v1/remember", renames={"type": "kind"}, fixed={"kind": "context"}),
        ADDS,
        home="scope",
    ),
    Tool(
        "memory_search",
        "Like recall, but short fragments with keys, to look up notes.",
        sent({"query": field(Recall, "query"), "max_results": whole()}, "query"),
        {
            "type": "object",
            "properties": {"results": {"type": "array"}},
        },
        keyed.search,
        home="project",
        recalls=True,
    ),
    Tool(
        "memory_list",
        "List active memories, newest first. To find something, use recall.",
        sent({"type": text(), "scope": text(), "cursor": text("from next")}),
        told(MemoryPage, "items"),
        One(
            "GET", "/v1/memories", renames={"type": "kind"}, fixed={"status": "active", "limit": 20}
        ),
        home="scope",
        recalls=True,
    ),
    Tool(
        "memory_delete",
        "Forget the note under a key.",
        sent({"key": text(), "scope": text()}, "key"),
        told(Edited, "version"),
        keyed.delete,
        REMOVES,
        home="scope",
    ),
    Tool(
        "history",
        "How a memory changed: versions, who, why. Use before rollback.",
        sent({"id": text()}, "id"),
        told(History, "items"),
        One("GET", "/v1/memories/{id}/history"),
        recalls=True,
    ),
    Tool(
        "confirm",
        "Say that a memory from stale was checked and still holds.",
        sent({"id": text()}, "id"),
        told(Confirmed, "cleared"),
        One("POST", "/v1/memories/{id}/confirm"),
        SETTLES,
    ),
    Tool(
        "rollback",
        "Bring an earlier version of a memory back.",
        sent({"id": text(), "version": field(RollBack, "version")}, "id", "version"),
        told(Edited, "version"),
        One("POST", "/v1/memories/{id}/rollback"),
        SETTLES,
    ),
    Tool(
        "feedback",
        "Judge a memory: approve makes it certain, edit rewrites, discard forgets it.",
        sent(
            {
                "id": text(),
                "verdict": field(Feedback, "verdict"),
                "content": field(Feedback, "content", "for edit"),
            },
            "id",
            "verdict",
        ),
        told(Edited, "version"),
        One("POST", "/v1/memories/{id}/feedback"),
        Hints(destroys=True),
    ),
    Tool(
        "dream",
        "Digest conversations into memories now. Rarely needed: it happens by itself.",
        sent({"scope": field(RequestDream, "scope"), "session": field(RequestDream, "session")}),
        told(DreamRequested, "status"),
        One("POST", "/v1/dream"),
        ADDS,
        home="scope",
        instead=("session",),
    ),
    Tool(
        "more",
        "All else: sessions, turns, adjust, tasks, claims, provenance, pins, skills, vault, "
        "traces, export, settings. Alone it lists operations; with one, says what it takes; with "
        "arguments (or {}), does it.",
        sent({"operation": text(), "arguments": {"type": "object"}}),
        {"type": "object"},
        operate,
        Hints(destroys=True),
        fences=True,
    ),
)


def offered(profile: str) -> dict[str, Tool]:
    """The tools of a profile, `full` or `minimal`, by name."""
    named = {tool.name: tool for tool in TOOLS}
    return named if profile == "full" else {name: named[name] for name in MINIMAL}
