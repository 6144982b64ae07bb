"""Validates, redacts and classifies what a client sends, ready to be stored. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from json import dumps
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from reverie.contracts.memories.memories import (
    GitLocation,
    RememberEdge,
    RememberRequest,
    SymbolLocation,
)
from reverie.contracts.memories.system_metadata import check_own_fields
from reverie.contracts.sessions import NewTurnBody as TurnBody
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import (
    build_scope,
    home_levels,
    parse_display_names,
    parse_scope,
    project_of_scope,
)
from reverie.domain.core.errors import InvalidInput, field_context
from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import ANCHOR_KINDS, KIND_POLICIES, Kind, parse_edge_kind, parse_kind
from reverie.domain.core.memory import NewEdge, NewMemory, hash_content, state_hints
from reverie.domain.extraction.content_checks import classify_kind, suggest_improvements
from reverie.domain.extraction.own_memories import own_preference_scope
from reverie.domain.formats.procedures import render_steps
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.characters import is_blank
from reverie.domain.text.index_terms import memory_index_text, turn_index_text
from reverie.domain.text.memory_fence import OMITTED_PLACEHOLDER, strip_fenced
from reverie.domain.text.turns import condense_tool_output, truncate_output
from reverie.runtime.http.validation import check_size
from reverie.runtime.settings.settings import Settings
from reverie.store.sessions.sessions import SessionRecord, TurnToAppend

SOFT_CORRECTION_REASON = "minor correction"
TOOL_OUTPUT_CHARS = 600
"""Characters of a tool's output that are searched and digested."""
REPLAY_CHARS = 16_000
"""Characters of a tool's output that are kept for replays: a screen full of results, and the end
of a long log, where its error is.
"""
_TEXT_FIELDS = ("content", "steps", "summary", "tags", "key", "supersede_reason", "metadata", "git")
ONLY_RECALLED_MESSAGE = "is recalled memory and nothing else: it is known already"


@dataclass(frozen=True)
class PreparedMemory:
    """A memory ready to be written, how many secrets were replaced in it, and soft hints."""

    memory: NewMemory
    redactions: int
    hints: tuple[str, ...]


def prepare_memory(
    body: RememberRequest,
    principal: Principal,
    redactor: Redactor,
    settings: Settings,
    session: SessionRecord | None = None,
    *,
    by_system: bool = False,
) -> PreparedMemory:
    """Validates and completes a memory.

    `session`: the named session. The memory belongs to its agent if the key has none, and to its
    scope if the body names none. `by_system`: a service made the body, so it may hold reserved keys
    and metadata.
    Raises `InvalidInput`, `PayloadTooLarge` or `Forbidden`, naming the field.
    """
    full_content = render_steps(body.content, body.steps) if body.steps else body.content
    check_size("content", full_content, settings.content_limit, "content_limit")
    scope = (
        parse_scope(body.scope, redactor)
        if body.scope
        else _own_scope(principal, session, body)
        or _default_scope(principal, session, body.git, redactor)
    )
    principal.check_write(scope)
    check_validity(body.valid_from, body.valid_to)
    if not by_system:
        check_own_fields(body.key, body.metadata)
    _check_key(body.key, body.supersede_reason, body.soft)
    redacted, redactions = _redact_body(_strip_recalled(body), redactor.within(scope))
    if redacted.kind:
        kind = parse_writable_kind(redacted.kind)
    else:
        kind = Kind.SKILL if redacted.steps else classify_kind(redacted.content)
    if redacted.steps:
        redacted = _merge_steps(redacted, kind)
    memory = NewMemory(
        id=new_id(),
        scope=scope,
        kind=kind,
        content=redacted.content,
        content_hash=hash_content(redacted.content),
        words=memory_index_text(redacted.key, redacted.content, redacted.tags, redacted.metadata),
        tier=redacted.tier or KIND_POLICIES[kind].tier,
        confidence=redacted.confidence,
        key=redacted.key,
        supersede_reason=redacted.supersede_reason
        or (SOFT_CORRECTION_REASON if redacted.soft else None),
        soft=redacted.soft,
        summary=redacted.summary,
        tags=tuple(dict.fromkeys(redacted.tags)),
        pinned=redacted.pinned,
        session=redacted.session,
        agent=principal.agent or (session.agent if session else None),
        edges=tuple(_build_edge(index, edge) for index, edge in enumerate(redacted.edges)),
        git=_build_git_fields(redacted.git),
        metadata=redacted.metadata | ({"tier_by": "hand"} if redacted.tier else {}),
        valid_from=redacted.valid_from,
        valid_to=redacted.valid_to,
        scope_names=parse_display_names(body.scope) if body.scope else {},
    )
    return PreparedMemory(
        memory,
        redactions,
        (*suggest_improvements(redacted.content, kind), *state_hints(redacted.content)),
    )


def _own_scope(
    principal: Principal, session: SessionRecord | None, body: RememberRequest
) -> str | None:
    """The scope of the user, if they say something of their own way of working."""
    user = (session.user_name if session else None) or principal.effective_user
    kind = parse_kind(body.kind) if body.kind else classify_kind(body.content)
    project = session.project if session else principal.project
    files = body.git.files if body.git else ()
    scope = own_preference_scope(kind, body.content, files or (), project, user)
    return scope if scope and principal.may_write(scope) else None


def _default_scope(
    principal: Principal,
    session: SessionRecord | None,
    git: GitLocation | None,
    redactor: Redactor,
) -> str:
    """Returns the scope of a memory that names none: its session's, else the key's.

    Where that is a project, it is the memory's branch in it, if the key may write there.
    """
    default_scope = session.scope if session else principal.default_scope()
    if (
        git is None
        or git.branch is None
        or default_scope != f"project/{project_of_scope(default_scope)}"
    ):
        return default_scope
    branch = build_scope(
        home_levels(project_of_scope(default_scope), None, redactor.redact(git.branch).text)
    )
    return branch if principal.may_write(branch) else default_scope


def check_validity(start: datetime | None, stop: datetime | None) -> None:
    """Raises `InvalidInput` if a validity period ends before it begins."""
    if start and stop and stop < start:
        raise InvalidInput("valid_to", "lies before valid_from")


def parse_writable_kind(name: str) -> Kind:
    """The kind of that name. Raises `InvalidInput` for a kind that only the services write."""
    kind = parse_kind(name)
    if kind in ANCHOR_KINDS:
        raise InvalidInput("kind", f"{kind.value} nodes are made from what memories touch")
    return kind


def _check_key(key: str | None, supersede_reason: str | None, soft: bool) -> None:
    if supersede_reason is not None and key is None:
        raise InvalidInput("supersede_reason", "says why a key is replaced: give the key too")
    if soft and key is None:
        raise InvalidInput("soft", "corrects what stands under a key: give the key too")


def _strip_recalled(body: RememberRequest) -> RememberRequest:
    """The same body without the memory that was recalled into it."""
    content, summary = strip_fenced(body.content), strip_fenced(body.summary or "")
    if is_blank(content):
        raise InvalidInput("content", ONLY_RECALLED_MESSAGE)
    steps = [strip_fenced(step).strip() for step in body.steps]
    for index, step in enumerate(steps):
        if is_blank(step):
            raise InvalidInput(f"steps.{index}", "is recalled memory and nothing else")
    own_fields = {"content": content.strip(), "steps": steps, "summary": summary.strip() or None}
    return body.model_copy(update=own_fields)


def _redact_body(body: RememberRequest, redactor: Redactor) -> tuple[RememberRequest, int]:
    """The same body without secrets in any text of it, and how many were replaced."""
    text_fields = {name for name in _TEXT_FIELDS if getattr(body, name)}
    redacted = redactor.redact_value(body.model_dump(include=text_fields, mode="json"))
    edge_metadata = redactor.redact_value([edge.metadata for edge in body.edges])
    redacted_edges = [
        edge.model_copy(update={"metadata": metadata})
        for edge, metadata in zip(body.edges, edge_metadata.value, strict=True)
    ]
    values: dict[str, Any] = {
        **redacted.value,
        "git": _rebuild_git(redacted.value.get("git"), body.git),
        "edges": redacted_edges,
    }
    return body.model_copy(update=values), redacted.count + edge_metadata.count


def _rebuild_git(git: dict[str, Any] | None, original: GitLocation | None) -> GitLocation | None:
    """Rebuilds the git data without validation: a secret's placeholder is no commit and no short
    path.
    """
    if git is None or original is None:
        return None
    lines = {path: [tuple(span) for span in spans] for path, spans in git["lines"].items()}
    symbols = {
        path: [
            SymbolLocation.model_construct(name=s["name"], lines=tuple(s["lines"])) for s in entries
        ]
        for path, entries in git["symbols"].items()
    }
    modified_at = {path: datetime.fromisoformat(at) for path, at in git["modified_at"].items()}
    return GitLocation.model_construct(
        **{
            **git,
            "lines": lines,
            "symbols": symbols,
            "modified_at": modified_at,
            "committed_at": original.committed_at,
        }
    )


def _merge_steps(body: RememberRequest, kind: Kind) -> RememberRequest:
    """Merges a skill's steps into its content, so that they are found; keeps the ordered list."""
    if kind is not Kind.SKILL:
        raise InvalidInput("steps", f"only a skill has steps, not a {kind.value}")
    metadata = {**body.metadata, "steps": body.steps}
    content = render_steps(body.content, body.steps)
    return body.model_copy(update={"content": content, "metadata": metadata})


def _build_edge(index: int, edge: RememberEdge) -> NewEdge:
    with field_context(f"edges.{index}.type"):
        kind = parse_edge_kind(edge.type)
    return NewEdge(edge.to, kind, edge.weight, edge.metadata)


def _build_git_fields(git: GitLocation | None) -> dict[str, Any] | None:
    if git is None:
        return None
    fields = git.model_dump(mode="json")
    for name in ("lines", "symbols", "blobs"):
        fields[name] = {path.removeprefix("./"): entry for path, entry in fields[name].items()}
    fields["files"] = [path.removeprefix("./") for path in git.files]
    return {name: value for name, value in fields.items() if value}


def prepare_turn(
    index: int,
    turn: TurnBody,
    redactor: Redactor,
    settings: Settings,
    idempotency_key: str | None,
) -> tuple[TurnToAppend, int]:
    """A turn without secrets and without recalled memory, a tool's call condensed.

    The output itself is kept beside it for replays, up to `REPLAY_CHARS`.

    With it comes how many secrets were replaced. A turn that was nothing but recalled memory
    keeps its place, with a note in it. `idempotency_key` is the idempotency key of the call.
    Raises `PayloadTooLarge`.
    """
    own_text = strip_fenced(turn.content)
    redacted, tool = (
        redactor.redact(OMITTED_PLACEHOLDER if is_blank(own_text) else own_text),
        redactor.redact(turn.tool or ""),
    )
    content = redacted.text
    output: str | None = None
    if turn.role == "tool":
        output = truncate_output(content, REPLAY_CHARS)
        content = condense_tool_output(tool.text or None, content, TOOL_OUTPUT_CHARS)
    else:
        check_size(f"turns.{index}.content", turn.content, settings.turn_limit, "turn_limit")
    stored = TurnToAppend(
        id=new_id(),
        role=turn.role,
        content=content,
        words=turn_index_text(turn.role, content),
        tool=tool.text or None,
        external_id=redactor.redact(turn.external_id or "").text
        or _derive_external_id(idempotency_key, index, turn, content),
        at=turn.at,
        # What is no longer than the condensed call need not be kept twice.
        output=output if output and len(output) > len(content) else None,
    )
    return stored, redacted.count + tool.count


def _derive_external_id(
    idempotency_key: str | None, index: int, turn: TurnBody, content: str
) -> str | None:
    """Derives an external id for a turn without one; a repeated request gives the same id.

    A process that dies after its commit leaves the idempotency key without an answer. When that
    claim has expired, the request is executed again and finds what it stored. The id includes the
    request's content, so that a key reused much later hides nothing new.
    """
    if idempotency_key is None:
        return None
    at = turn.at.isoformat() if turn.at else None
    payload = dumps([idempotency_key, index, turn.role, at, content])
    return f"request:{uuid5(NAMESPACE_URL, payload)}"
