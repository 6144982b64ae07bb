"""Parses and checks one line of a JSON lines export. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from reverie.contracts.dreams import LlmBudgetUpdate
from reverie.contracts.export_import import (
    RECORD_TYPES,
    ExportedEdge,
    ExportedMemory,
    ExportedMemoryVersion,
    ExportedProjectSetting,
    ExportedScopeName,
    ExportedScopeSummary,
    ExportedTurn,
    ExportHeader,
    ExportRecord,
)
from reverie.contracts.export_import import ExportedSession as Talk
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import is_display_name, parse_scope, slugify
from reverie.domain.context.budgets import DEFAULT_BUDGETS
from reverie.domain.core.errors import InvalidInput, MalformedInput, ReverieError, field_context
from reverie.domain.core.kinds import ANCHOR_KINDS, EdgeKind, parse_edge_kind, parse_kind
from reverie.domain.core.memory import hash_content
from reverie.domain.extraction.dream_runs import DEFAULT_THRESHOLDS as LIMITS
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.characters import is_blank
from reverie.domain.text.index_terms import index_text
from reverie.domain.text.memory_fence import OMITTED_PLACEHOLDER
from reverie.runtime.http.validation import parse_value
from reverie.store.sessions.dream_runs import ALL_PROJECTS
from reverie_services.ingest.settings import IngestSettings
from reverie_services.ingest.write.preparation import check_size, check_validity

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


@dataclass(frozen=True)
class ImportRecord:
    """A record ready to be stored: its type and its columns."""

    kind: str
    fields: dict[str, Any]


def check_header(text: bytes) -> None:
    """Raises `MalformedInput` if the first line is not the header of a known format."""
    try:
        parse_value(ExportHeader, _parse_json(text))
    except ReverieError as error:
        raise MalformedInput(
            f'line 1: not the header {{"type":"header","format":"reverie","version":1}} ({error})'
        ) from None


def parse_record(
    text: bytes, principal: Principal, redactor: Redactor, settings: IngestSettings
) -> ImportRecord:
    """The record of a line. Raises `InvalidInput`, `PayloadTooLarge`, `MalformedInput` or
    `Forbidden`."""
    value = _parse_json(text)
    kind = value.pop("type", None)
    model = RECORD_TYPES.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise InvalidInput("type", f"use one of {', '.join(RECORD_TYPES)}")
    tenant = value.pop("tenant", None)
    if tenant not in {None, principal.tenant_name}:
        raise InvalidInput("tenant", "the record belongs to another tenant")
    for name in _DERIVED_COLUMNS:
        value.pop(name, None)
    line = parse_value(model, value)
    for name, inner_value in value.items():
        redacted = redactor.redact_value({name: inner_value})
        if redacted.count:
            raise InvalidInput(name[:100], f"holds a secret ({', '.join(redacted.kinds)})")
    _check_permissions(line, principal, settings)
    return ImportRecord(str(kind), {**value, **_derive_columns(line, value)})


def _parse_json(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedInput("is not JSON") from None
    if not isinstance(value, dict):
        raise MalformedInput("is not a JSON object")
    return value


def _check_permissions(line: ExportRecord, principal: Principal, settings: IngestSettings) -> None:
    """Scopes that the key may write, transcripts of its own agent, contents within the limits."""
    if isinstance(line, ExportedMemory | ExportedScopeSummary | Talk | ExportedScopeName):
        principal.check_write(parse_scope(line.scope))
    if isinstance(line, ExportedProjectSetting) and line.project == ALL_PROJECTS:
        principal.check_admin()
    elif isinstance(line, ExportedProjectSetting):
        principal.check_write(f"project/{slugify(line.project)}")
    if isinstance(line, ExportedScopeName) and not is_display_name(
        parse_scope(line.scope), line.name
    ):
        raise InvalidInput(
            "name", "is not what the scope ends with: use the name that was made a slug"
        )
    if isinstance(line, Talk) and principal.agent is not None and line.agent != principal.agent:
        raise InvalidInput("agent", "the transcript is another agent's")
    if isinstance(line, ExportedMemory):
        check_size("content", line.content, settings.content_limit, "content_limit")
    if isinstance(line, ExportedTurn):
        check_size("content", line.content, settings.turn_limit, "turn_limit")


def _derive_columns(line: ExportRecord, value: dict[str, Any]) -> dict[str, Any]:
    """Derives the columns that are not exported, and normalizes names."""
    match line:
        case ExportedMemory():
            return _derive_memory_columns(line)
        case ExportedTurn():
            is_unindexed = line.role == "tool" or line.content == OMITTED_PLACEHOLDER
            return {"text": "" if is_unindexed else index_text(line.content)}
        case ExportedScopeSummary() | Talk() | ExportedScopeName():
            return {"scope": parse_scope(line.scope)}
        case ExportedProjectSetting():
            return _derive_setting_columns(line)
        case ExportedMemoryVersion():
            tags = line.state.get("tags") or []
            texts = (line.state.get("key"), line.content, *(tags if isinstance(tags, list) else []))
            text = index_text(" ".join(str(text) for text in texts if text))
            return {"state": line.state, "text": text}
        case ExportedEdge():
            return _derive_edge_columns(value)
    return {}


def _derive_memory_columns(line: ExportedMemory) -> dict[str, Any]:
    if is_blank(line.content):
        raise InvalidInput("content", "is empty")
    check_validity(line.valid_from, line.valid_to)
    kind = parse_kind(line.kind)
    is_unindexed = kind in ANCHOR_KINDS or line.merged_into
    words = " ".join(filter(None, (line.key, line.content, *line.tags)))
    return {
        "scope": parse_scope(line.scope),
        "kind": kind.value,
        "hash": hash_content(line.content),
        "text": "" if is_unindexed else index_text(words),
        "tags": sorted(set(line.tags)),
        "turns": sorted({str(turn) for turn in line.turns}),
        "metadata": line.metadata,
    }


def _derive_setting_columns(line: ExportedProjectSetting) -> dict[str, Any]:
    value = line.value.model_dump(exclude_none=True)
    with field_context("value"):
        if (line.name == "llm") is not isinstance(line.value, LlmBudgetUpdate):
            raise InvalidInput("value", f"is not of the setting {line.name}")
        if line.name != "llm":
            (DEFAULT_BUDGETS if line.name == "context" else LIMITS).with_changes(value)
    project = line.project if line.project == ALL_PROJECTS else slugify(line.project)
    return {"project": project, "value": value}


def _derive_edge_columns(value: dict[str, Any]) -> dict[str, Any]:
    """`A caused_by B` is stored as `B led_to A`."""
    if value["src"] == value["dst"]:
        raise InvalidInput("dst", "an edge leads from a memory to itself")
    with field_context("kind"):
        kind = parse_edge_kind(value["kind"])
    meta = {"meta": value.get("meta") or {}}
    if kind is EdgeKind.CAUSED_BY:
        return {"kind": "led_to", "src": value["dst"], "dst": value["src"], **meta}
    return {"kind": kind.value, **meta}
