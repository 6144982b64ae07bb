"""Parses and checks one line of a JSON lines export. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from reverie.contracts.dreams import LlmBudgetUpdate
from reverie.contracts.export_import import (
    RECORD_TYPES,
    ExportedAnchor,
    ExportedEdge,
    ExportedMemory,
    ExportedMemoryVersion,
    ExportedPicture,
    ExportedProjectSetting,
    ExportedScopeName,
    ExportedScopeSummary,
    ExportedState,
    ExportedTaskState,
    ExportedTurn,
    ExportHeader,
    ExportRecord,
)
from reverie.contracts.export_import import ExportedSession as Talk
from reverie.contracts.memories.system_metadata import check_imported_fields
from reverie.contracts.projects import LinkProjectsRequest
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import (
    is_display_name,
    parse_scope,
    project_of_scope,
    slugify,
)
from reverie.domain.context.budgets import DEFAULT_BUDGETS
from reverie.domain.core.errors import (
    InvalidInput,
    MalformedInput,
    ReverieError,
    field_context,
    prefix_field,
)
from reverie.domain.core.kinds import ANCHOR_KINDS, EdgeKind, Kind, parse_edge_kind, parse_kind
from reverie.domain.core.memory import hash_content
from reverie.domain.extraction.dream_log import DEFAULT_THRESHOLDS as LIMITS
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.staleness.commit_marks import COMMIT_SOURCE
from reverie.domain.text.characters import is_blank
from reverie.domain.text.index_terms import memory_index_text, turn_index_text
from reverie.domain.text.memory_fence import OMITTED_PLACEHOLDER, strip_fenced
from reverie.runtime.http.validation import check_size, parse_value
from reverie.runtime.settings.settings import Settings
from reverie.store.sessions.dream_runs import ALL_PROJECTS
from reverie_services.ingest.write.picture_files import decode_picture
from reverie_services.ingest.write.prepared_records import (
    ONLY_RECALLED_MESSAGE,
    check_validity,
)

_DERIVED_COLUMNS = (
    "doc",
    "enriched_version",
    "hash",
    "imported_version",
    "short",
    "terms",
    "text",
    "words",
)
"""Columns that a line cannot set, because they are derived from the others."""
_LISTS = frozenset({"stale", "turns", "utterances"})
"""Fields that grow with the use of a memory; the limit of a line is theirs."""
_CLAIM = ("claimed_by", "claimed_until")


@dataclass(frozen=True)
class ImportRecord:
    """A record ready to be stored: its type and its columns; `redactions` counts replaced
    secrets."""

    kind: str
    fields: dict[str, Any]
    redactions: int = 0


def check_header(text: bytes) -> None:
    """Raises `MalformedInput` if the first line is not the header of a known format."""
    try:
        parse_value(ExportHeader, _parse_json(text))
    except ReverieError as error:
        raise MalformedInput(
            f'line 1: not the header {{"type":"header","format":"reverie","version":1}} ({error})'
        ) from None


def parse_record(
    text: bytes, principal: Principal, redactor: Redactor, settings: Settings
) -> ImportRecord:
    """The record of a line, checked as the same data is at the interface that writes it.

    Raises `InvalidInput`, `PayloadTooLarge`, `MalformedInput` or `Forbidden`.
    """
    value = _parse_json(text)
    kind = value.pop("type", None)
    model = RECORD_TYPES.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise InvalidInput("type", f"use one of {', '.join(RECORD_TYPES)}")
    if value.pop("tenant", None) not in {None, principal.tenant_name}:
        raise InvalidInput("tenant", "the record belongs to another tenant")
    for name in _DERIVED_COLUMNS:
        value.pop(name, None)
    if model is ExportedMemoryVersion and isinstance(value.get("state"), dict):
        value["state"].pop("hash", None)
    if len(text) > settings.body_limit and model is not ExportedPicture:
        _check_field_sizes(value, 2 * settings.body_limit)
    line = parse_value(model, value)
    if isinstance(line, ExportedPicture):
        return _parse_picture(line, redactor)
    _check_permissions(line, principal)
    _check_values(line, settings)
    redactor = _within_scope(line, redactor)
    given = _strip_recalled(line, line.model_dump(mode="json", exclude_unset=True))
    redacted = redactor.redact_value(given)
    fields = _derive_columns(line, redacted.value, redactor)
    if principal.agent is not None:
        _restrict_authorship(line, fields, principal)
    return ImportRecord(str(kind), fields, redacted.count)


def _parse_picture(line: ExportedPicture, redactor: Redactor) -> ImportRecord:
    """A picture with its hash and its type; the store checks the right to its memory."""
    data, media_type, redactions = decode_picture(line.data, redactor)
    fields = {
        **line.model_dump(mode="json"),
        "data": base64.b64encode(data).decode(),
        "hash": f"\\x{hashlib.sha256(data).hexdigest()}",
        "media_type": media_type,
    }
    return ImportRecord("picture", fields, redactions)


def _parse_json(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise MalformedInput("is not JSON") from None
    if not isinstance(value, dict):
        raise MalformedInput("is not a JSON object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _check_field_sizes(value: dict[str, Any], limit: int) -> None:
    """A body that writes such a field has a limit, too."""
    for name, inner in value.items():
        if name not in _LISTS and len(json.dumps(inner, ensure_ascii=False)) > limit:
            raise InvalidInput(name[:100], f"holds more than {limit} characters")


def _check_permissions(line: ExportRecord, principal: Principal) -> None:
    """Scopes that the key may write, and transcripts of its own agent."""
    match line:
        case ExportedMemory() | ExportedScopeSummary() | Talk() | ExportedScopeName():
            principal.check_write(parse_scope(line.scope))
            if isinstance(line, ExportedMemory):
                _check_commit_source(line, line.scope, principal)
        case ExportedMemoryVersion():
            if line.state.scope is not None:
                principal.check_write(parse_scope(line.state.scope))
            with _state_prefix():
                _check_commit_source(line.state, line.state.scope, principal)
        case ExportedAnchor():
            principal.check_write(f"project/{slugify(line.project)}")
        case ExportedProjectSetting() if line.project == ALL_PROJECTS:
            principal.check_admin()
        case ExportedProjectSetting():
            principal.check_write(f"project/{slugify(line.project)}")
        case _:
            pass
    if isinstance(line, Talk) and principal.agent is not None and line.agent != principal.agent:
        raise InvalidInput("agent", "the transcript is another agent's")


@contextmanager
def _state_prefix() -> Iterator[None]:
    """An `InvalidInput` raised inside it names a field of a version's state."""
    try:
        yield
    except InvalidInput as error:
        raise prefix_field("state", error) from None


def _check_commit_source(state: ExportedState, scope: str | None, principal: Principal) -> None:
    """What a git change writes, only a key imports that may announce changes of the project."""
    if getattr(state, "source", None) != COMMIT_SOURCE:
        return
    project = project_of_scope(parse_scope(scope)) if scope is not None else None
    if project is None or not principal.may_announce(f"project/{project}"):
        raise InvalidInput(
            "source", "only a key that may announce changes of the project imports its commits"
        )
    if state.git is None or state.git.commit is None:
        raise InvalidInput("git", "is required: the memory of a commit names the commit")


def _check_values(line: ExportRecord, settings: Settings) -> None:
    """Checks what the model of a line cannot: limits, and fields that depend on each other."""
    match line:
        case ExportedMemory():
            _check_memory(line, settings)
        case ExportedMemoryVersion():
            _check_memory_version(line, settings)
        case ExportedTurn():
            check_size("content", line.content, settings.turn_limit, "turn_limit")
            check_size("output", line.output or "", settings.turn_limit, "turn_limit")
        case ExportedScopeSummary():
            check_size("content", line.content, settings.content_limit, "content_limit")
        case ExportedScopeName() if not is_display_name(parse_scope(line.scope), line.name):
            raise InvalidInput(
                "name", "is not what the scope ends with: use the name that was made a slug"
            )
        case ExportedAnchor() if line.name.lower() != line.path.rpartition("/")[2].lower():
            raise InvalidInput("name", "is not the last part of the path")
        case ExportedEdge():
            if line.src == line.dst:
                raise InvalidInput("dst", "an edge leads from a memory to itself")
            _check_period(line.known_from, line.known_to)
        case _:
            pass


def _check_memory(line: ExportedMemory, settings: Settings) -> None:
    check_size("content", line.content, settings.content_limit, "content_limit")
    if is_blank(line.content):
        raise InvalidInput("content", "is empty")
    check_validity(line.valid_from, line.valid_to)
    kind = parse_kind(line.kind)
    key = line.key or ""
    check_imported_fields(line.key, kind, line.source, line.metadata)
    if kind is Kind.FILE and key != f"file:{line.content}":
        raise InvalidInput("key", "the key of a file is file: and its path, which is its content")
    if kind is Kind.ENTITY and not key.startswith(("entity:", "topic:")):
        raise InvalidInput("key", "the key of an entity begins with entity: or topic:")
    if line.task is not None and kind is not Kind.TASK:
        raise InvalidInput("task", f"only a task has it, not a {kind.value}")


def _check_memory_version(line: ExportedMemoryVersion, settings: Settings) -> None:
    check_size("content", line.content, settings.content_limit, "content_limit")
    _check_period(line.known_from, line.known_to)
    state = line.state
    with field_context("state.valid_to"):
        check_validity(state.valid_from, state.valid_to)
    with field_context("state.kind"):
        kind = None if state.kind is None else parse_kind(state.kind)
    with _state_prefix():
        check_imported_fields(state.key, kind, state.source, state.metadata)


def _check_period(known_from: datetime, known_to: datetime | None) -> None:
    if known_to is not None and known_to < known_from:
        raise InvalidInput("known_to", "lies before known_from")


def _within_scope(line: ExportRecord, redactor: Redactor) -> Redactor:
    """The redactor of the record's scope; for one that names none, each secret counts."""
    scope = line.state.scope if isinstance(line, ExportedMemoryVersion) else None
    scope = getattr(line, "scope", scope)
    return redactor if scope is None else redactor.within(parse_scope(scope, redactor))


def _strip_recalled(line: ExportRecord, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields without the memory that was recalled into them."""
    if not isinstance(line, ExportedMemory | ExportedTurn):
        return fields
    own = {
        name: strip_fenced(text).strip()
        for name in ("content", "summary", "output")
        if (text := fields.get(name)) and strip_fenced(text) != text
    }
    if own.get("content") == "":
        if isinstance(line, ExportedMemory):
            raise InvalidInput("content", ONLY_RECALLED_MESSAGE)
        own["content"] = OMITTED_PLACEHOLDER
    return fields | own


def _derive_columns(
    line: ExportRecord, fields: dict[str, Any], redactor: Redactor
) -> dict[str, Any]:
    """The redacted fields with the columns that are not exported, and with normalized names."""
    match line:
        case ExportedMemory():
            return fields | _derive_memory_columns(line, fields, redactor)
        case ExportedTurn():
            return fields | {"text": turn_index_text(line.role, fields["content"])}
        case ExportedScopeSummary() | ExportedScopeName():
            return fields | {"scope": parse_scope(line.scope, redactor)}
        case Talk():
            counts = ("turns", "pending", "pending_segments", "pending_chars")
            return fields | {"scope": parse_scope(line.scope, redactor)} | dict.fromkeys(counts, 0)
        case ExportedProjectSetting():
            return fields | _derive_setting_columns(line)
        case ExportedAnchor():
            return fields | {"project": slugify(line.project)}
        case ExportedMemoryVersion():
            return fields | _derive_version_columns(line, fields, redactor)
        case ExportedEdge():
            return fields | _derive_edge_columns(fields)
    return fields


def _derive_memory_columns(
    line: ExportedMemory, fields: dict[str, Any], redactor: Redactor
) -> dict[str, Any]:
    kind = parse_kind(line.kind)
    tags = sorted(set(fields.get("tags") or ()))
    metadata = fields.get("metadata") or {}
    is_unindexed = kind in ANCHOR_KINDS or line.merged_into
    return {
        "scope": parse_scope(line.scope, redactor),
        "kind": kind.value,
        "hash": hash_content(fields["content"]),
        "text": ""
        if is_unindexed
        else memory_index_text(fields.get("key"), fields["content"], tags, metadata),
        "tags": tags,
        "turns": sorted({str(turn) for turn in line.turns}),
        "metadata": metadata,
    }


def _derive_version_columns(
    line: ExportedMemoryVersion, fields: dict[str, Any], redactor: Redactor
) -> dict[str, Any]:
    content, state = fields["content"], fields.get("state") or {}
    state = {**state, "hash": f"\\x{hash_content(content)}"}
    if line.state.scope is not None:
        state["scope"] = parse_scope(line.state.scope, redactor)
    if line.state.kind is not None:
        state["kind"] = parse_kind(line.state.kind).value
    text = memory_index_text(
        state.get("key"), content, state.get("tags", ()), state.get("metadata") or {}
    )
    return {"state": state, "text": text}


def _derive_setting_columns(line: ExportedProjectSetting) -> dict[str, Any]:
    value = line.value.model_dump(exclude_none=True)
    with field_context("value"):
        if (line.name == "llm") is not isinstance(line.value, LlmBudgetUpdate):
            raise InvalidInput("value", f"is not of the setting {line.name}")
        is_link = line.name.startswith("link/")
        if is_link is not isinstance(line.value, LinkProjectsRequest):
            raise InvalidInput("value", f"is not of the setting {line.name}")
        if line.name != "llm" and not is_link:
            (DEFAULT_BUDGETS if line.name == "context" else LIMITS).with_changes(value)
    project = line.project if line.project == ALL_PROJECTS else slugify(line.project)
    return {"project": project, "value": value}


def _derive_edge_columns(fields: dict[str, Any]) -> dict[str, Any]:
    """`A caused_by B` is stored as `B led_to A`."""
    with field_context("kind"):
        kind = parse_edge_kind(fields["kind"])
    meta = {"meta": fields.get("meta") or {}}
    if kind is EdgeKind.CAUSED_BY:
        return {"kind": "led_to", "src": fields["dst"], "dst": fields["src"], **meta}
    return {"kind": kind.value, **meta}


def _restrict_authorship(line: ExportRecord, fields: dict[str, Any], principal: Principal) -> None:
    """What a key of an agent imports, that agent writes; it claims no task for others.

    Of a memory, the store sets the authors: they stay those of one that it has.
    """
    match line:
        case ExportedMemory(task=ExportedTaskState(claimed_by=str(agent))):
            if agent != principal.agent and not agent.startswith(f"{principal.agent}/"):
                task = {name: fields["task"][name] for name in fields["task"] if name not in _CLAIM}
                fields["task"] = task | ({"state": "todo"} if task["state"] == "doing" else {})
        case ExportedMemoryVersion():
            fields["actor"] = principal.actor
        case ExportedEdge():
            fields["actor"] = principal.actor
            if line.closed_by is not None:
                fields["closed_by"] = principal.actor
        case _:
            pass
