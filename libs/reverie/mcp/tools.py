"""The list of tools: names, descriptions, schemas and the calls behind them."""

from __future__ import annotations

from reverie.contracts.context import ContextResponse
from reverie.contracts.dreams import DreamRequest, DreamRequestStatus
from reverie.contracts.memories.edits import (
    ConfirmMemoryResponse,
    FeedbackRequest,
    ForgetMemoryResponse,
    MemoryChangeResponse,
    MemoryHistoryPage,
    RollbackRequest,
)
from reverie.contracts.memories.git import StalePage
from reverie.contracts.memories.graph import (
    CreateLinkRequest,
    CreateLinkResponse,
    DeleteLinkResponse,
    ImpactPage,
    SubgraphResponse,
)
from reverie.contracts.memories.memories import RememberRequest, RememberResponse
from reverie.contracts.memories.typed_memories import MoveTaskRequest, TaskChangeResponse
from reverie.contracts.recall import RecallRequest, RecallResponse
from reverie.contracts.sessions import SessionPage
from reverie.domain.context.text_rendering import render_memories
from reverie.mcp import composite_tools
from reverie.mcp.more_tool import run_more as operate
from reverie.mcp.tool_definition import (
    ADDITIVE,
    DESTRUCTIVE,
    IDEMPOTENT,
    Arguments,
    Body,
    RestCall,
    Tool,
    ToolHints,
)
from reverie.mcp.tool_schemas import (
    arguments_schema,
    field_schema,
    field_schemas,
    integer_schema,
    result_schema,
    string_list_schema,
    string_schema,
)

KINDS = (
    "convention: for all such code? decision: one way chosen? lesson: from a mistake? "
    "context: just now? reference: a pointer? bug|spec|task|preference|skill"
)
EDGES = "caused_by|led_to|part_of|relates_to|depends_on|touches|contradicts"
MINIMAL_TOOLS = ("context", "recall", "remember", "forget", "impact")
"""The tools of the minimal profile."""


def _describe_place(arguments: Arguments) -> str:
    """Where was looked, so that a wrong name is noticed."""
    project = arguments.get("project")
    scopes = arguments.get("scopes") or ([f"project/{project}"] if project else [])
    return f" in {', '.join(map(str, scopes))}: is the name right?" if scopes else "."


def _describe_nothing(found: str, body: Body, arguments: Arguments) -> str:
    """That nothing was found, or that memory could not be asked, which says nothing of it."""
    if body.get("degraded"):
        return "Memory cannot be read now, so this does not say that nothing is known: ask later."
    return f"{found}{_describe_place(arguments)}"


def _render_memories(body: Body, arguments: Arguments) -> str:
    empty_text = _describe_nothing("Nothing is known about that", body, arguments)
    notes = [f"not asked: {name}" for name in body.get("degraded", ())]
    if any(memory.get("is_cut") for memory in body["memories"]):
        notes.append("… omits text: more, operation get_memory, has all of a memory by its id")
    return render_memories(body["memories"], empty_text) + "".join(f"\n({n})" for n in notes)


def _render_context(body: Body, arguments: Arguments) -> str:
    return str(body.get("markdown") or _describe_nothing("Nothing is known yet", body, arguments))


TOOLS = (
    Tool(
        "recall",
        "Search long-term memory by question. Use before non-trivial work and when past "
        "decisions, bugs or conventions may matter. Not for what the code itself shows.",
        arguments_schema(
            field_schemas(
                RecallRequest,
                query="plain words; identifiers and paths help",
                kinds="",
                scopes="as project/shop",
                files="",
                limit="",
                session="",
                as_of="RFC 3339: what was known then",
            ),
            "query",
        ),
        result_schema(RecallResponse, "memories"),
        composite_tools.recall,
        project_argument="project",
        returns_memories=True,
        render_text=_render_memories,
    ),
    Tool(
        "remember",
        "Store one durable fact. Not for secrets, chatter or what code or git says. "
        "On conflicts, ask your user.",
        arguments_schema(
            {
                **field_schemas(
                    RememberRequest,
                    content="one fact, understandable alone",
                    kind=KINDS,
                    scope="as project/shop or global",
                    key="one active memory per key",
                    supersede_reason="to replace the key's",
                    tags="",
                ),
                "files": string_list_schema("paths it is about"),
                **field_schemas(RememberRequest, edges="[{to: id, type}]", session=""),
            },
            "content",
        ),
        result_schema(RememberResponse, "id", "status"),
        RestCall("POST", "/v1/remember", nested={"files": "git"}),
        ADDITIVE,
        project_argument="scope",
        alternative_arguments=("session",),
    ),
    Tool(
        "context",
        "What to know before starting: conventions, tasks, recent decisions, stale warnings. Use "
        "once at session start; then recall.",
        arguments_schema(
            {
                "project": string_schema(),
                "session": string_schema(),
                "scopes": string_list_schema(),
                "files": string_list_schema("open files"),
            }
        ),
        result_schema(ContextResponse, "markdown"),
        RestCall("GET", "/v1/context"),
        project_argument="project",
        result_fields=("markdown", "tokens", "degraded"),
        render_text=_render_context,
    ),
    Tool(
        "forget",
        "Remove a wrong memory, by id or key. If it was only replaced, use remember with its key.",
        arguments_schema(
            {
                "id": string_schema(),
                "key": string_schema(),
                "scope": string_schema(),
            }
        ),
        result_schema(ForgetMemoryResponse, "version"),
        composite_tools.forget,
        DESTRUCTIVE,
        project_argument="scope",
        alternative_arguments=("id",),
    ),
    Tool(
        "link",
        "Connect two memories, so that recall finds one through the other.",
        arguments_schema(
            {
                "from": string_schema(),
                "to": string_schema(),
                "type": field_schema(CreateLinkRequest, "type", EDGES),
            },
            "from",
            "to",
            "type",
        ),
        result_schema(CreateLinkResponse, "id"),
        RestCall("POST", "/v1/links"),
        IDEMPOTENT,
    ),
    Tool(
        "unlink",
        "Remove a wrong edge; its id is in recall or subgraph.",
        arguments_schema({"id": string_schema()}, "id"),
        result_schema(DeleteLinkResponse, "id"),
        RestCall("DELETE", "/v1/links/{id}"),
        DESTRUCTIVE,
    ),
    Tool(
        "subgraph",
        "Memories around one that recall found: why it came to be, what depends on it.",
        arguments_schema({"id": string_schema(), "depth": integer_schema("1 to 5")}, "id"),
        result_schema(SubgraphResponse, "nodes"),
        RestCall("GET", "/v1/memories/{id}/subgraph"),
        returns_memories=True,
    ),
    Tool(
        "impact",
        "What is known that a change of a file or entity would touch. Use before editing.",
        arguments_schema(
            {
                "path": string_schema("in the repository"),
                "entity": string_schema(),
                "project": string_schema(),
            }
        ),
        result_schema(ImpactPage, "items"),
        RestCall("GET", "/v1/impact"),
        project_argument="project",
        returns_memories=True,
    ),
    Tool(
        "status",
        "Whether memory works, and its size. Use when a tool fails.",
        arguments_schema({}),
        {
            "type": "object",
            "properties": {"ready": {"type": "boolean"}},
        },
        composite_tools.get_status,
    ),
    Tool(
        "task_update",
        "Move a task (a memory of kind task), claim it, or say what it waits for.",
        arguments_schema(
            {
                "id": string_schema(),
                "state": field_schema(MoveTaskRequest, "state"),
                "depends_on": string_list_schema("task ids"),
                "claim_seconds": integer_schema("claim it so long"),
                "agent": string_schema(),
            },
            "id",
        ),
        result_schema(TaskChangeResponse, "task"),
        composite_tools.update_task,
        IDEMPOTENT,
    ),
    Tool(
        "sessions",
        "List recent sessions with their summaries, to go on where one ended.",
        arguments_schema({"project": string_schema(), "limit": integer_schema()}),
        result_schema(SessionPage, "items"),
        RestCall("GET", "/v1/sessions", defaults={"limit": 10}),
        project_argument="project",
        returns_memories=True,
    ),
    Tool(
        "stale",
        "Memories that commits made doubtful, with evidence. Check, then confirm or forget.",
        arguments_schema({"project": string_schema(), "limit": integer_schema()}),
        result_schema(StalePage, "items"),
        RestCall("GET", "/v1/stale", defaults={"limit": 10}),
        project_argument="project",
        returns_memories=True,
    ),
    Tool(
        "history",
        "How a memory changed: versions, who, why. Use before rollback.",
        arguments_schema({"id": string_schema()}, "id"),
        result_schema(MemoryHistoryPage, "items"),
        RestCall("GET", "/v1/memories/{id}/history"),
        returns_memories=True,
    ),
    Tool(
        "confirm",
        "Say that a memory from stale was checked and still holds.",
        arguments_schema({"id": string_schema()}, "id"),
        result_schema(ConfirmMemoryResponse, "cleared"),
        RestCall("POST", "/v1/memories/{id}/confirm"),
        IDEMPOTENT,
    ),
    Tool(
        "rollback",
        "Bring an earlier version of a memory back.",
        arguments_schema(
            {"id": string_schema(), "version": field_schema(RollbackRequest, "version")},
            "id",
            "version",
        ),
        result_schema(MemoryChangeResponse, "version"),
        RestCall("POST", "/v1/memories/{id}/rollback"),
        IDEMPOTENT,
    ),
    Tool(
        "feedback",
        "Judge a memory: approve makes it certain, edit rewrites, discard forgets it.",
        arguments_schema(
            {
                "id": string_schema(),
                **field_schemas(FeedbackRequest, verdict="", content="for edit"),
            },
            "id",
            "verdict",
        ),
        result_schema(MemoryChangeResponse, "version"),
        RestCall("POST", "/v1/memories/{id}/feedback"),
        ToolHints(destructive=True),
    ),
    Tool(
        "dream",
        "Digest conversations into memories now. Rarely needed: it happens by itself.",
        arguments_schema(field_schemas(DreamRequest, scope="", session="")),
        result_schema(DreamRequestStatus, "status"),
        RestCall("POST", "/v1/dream"),
        ADDITIVE,
        project_argument="scope",
        alternative_arguments=("session",),
    ),
    Tool(
        "more",
        "All else: lists, notes by key, sessions, turns, corrections, tasks, facts, provenance, "
        "pins, skills, vault, traces, export, settings. Alone it lists operations; with one, says "
        "what it takes; with arguments (or {}), does it.",
        arguments_schema({"operation": string_schema(), "arguments": {"type": "object"}}),
        {"type": "object"},
        operate,
        ToolHints(destructive=True),
        is_fenced=True,
    ),
)


def select_tools(profile: str) -> dict[str, Tool]:
    """The tools of a profile, `full` or `minimal`, by name."""
    tools_by_name = {tool.name: tool for tool in TOOLS}
    return (
        tools_by_name
        if profile == "full"
        else {name: tools_by_name[name] for name in MINIMAL_TOOLS}
    )
