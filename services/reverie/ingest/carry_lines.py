"""One line of an export, judged: what is to be stored, or why it is refused. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from reverie.contracts.carry import (
    LINES,
    EdgeLine,
    Header,
    MemoryLine,
    NameLine,
    Record,
    SettingLine,
    SummaryLine,
    TurnLine,
    VersionLine,
)
from reverie.contracts.carry import SessionLine as Talk
from reverie.contracts.dreams import SetLlm
from reverie.domain.access import Principal
from reverie.domain.blank import is_blank
from reverie.domain.budgets import DEFAULT
from reverie.domain.dreaming import DEFAULT as LIMITS
from reverie.domain.edges import EdgeKind, parse_edge_kind
from reverie.domain.errors import Invalid, Malformed, ReverieError
from reverie.domain.fence import LEFT_OUT
from reverie.domain.fields import naming
from reverie.domain.kinds import ANCHORS, parse_kind
from reverie.domain.memory import content_hash
from reverie.domain.redaction import redact_value
from reverie.domain.scopes import named_by, parse_scope, slug
from reverie.domain.words import index_text
from reverie.ingest.accept import check_size
from reverie.ingest.settings import IngestSettings
from reverie.runtime.body import parse_value
from reverie.store.dream_runs import TENANT_WIDE

_DERIVED = ("carried", "doc", "enriched_version", "hash", "short", "terms", "text", "words")
"""What a line cannot say: columns that follow from the rest."""


@dataclass(frozen=True)
class Row:
    """A record ready to be stored: its type and its columns."""

    kind: str
    fields: dict[str, Any]


def read_header(text: bytes) -> None:
    """Raises `Malformed` where the first line is not the header of a form that is known."""
    try:
        parse_value(Header, _json(text))
    except ReverieError as error:
        raise Malformed(
            f'line 1: not the header {{"type":"header","format":"reverie","version":1}} ({error})'
        ) from None


def judge(text: bytes, who: Principal, settings: IngestSettings) -> Row:
    """The record of a line. Raises `Invalid`, `TooLarge`, `Malformed` or `Forbidden`."""
    value = _json(text)
    kind = value.pop("type", None)
    model = LINES.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise Invalid("type", f"use one of {', '.join(LINES)}")
    tenant = value.pop("tenant", None)
    if tenant not in {None, who.tenant_name}:
        raise Invalid("tenant", "the record belongs to another tenant")
    for name in _DERIVED:
        value.pop(name, None)
    line = parse_value(model, value)
    _check_secrets(value)
    _check_own(line, who, settings)
    return Row(str(kind), {**value, **_derived(line, value)})


def _json(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Malformed("is not JSON") from None
    if not isinstance(value, dict):
        raise Malformed("is not a JSON object")
    return value


def _check_secrets(value: dict[str, Any]) -> None:
    for name, inner in value.items():
        found = redact_value({name: inner})
        if found.count:
            raise Invalid(name[:100], f"holds a secret ({', '.join(found.kinds)})")


def _check_own(line: Record, who: Principal, settings: IngestSettings) -> None:
    """Scopes that the key may write, transcripts of its own agent, contents within the limits."""
    if isinstance(line, MemoryLine | SummaryLine | Talk | NameLine):
        who.check_write(parse_scope(line.scope))
    if isinstance(line, SettingLine) and line.project == TENANT_WIDE:
        who.check_admin()
    elif isinstance(line, SettingLine):
        who.check_write(f"project/{slug(line.project)}")
    if isinstance(line, NameLine) and not named_by(parse_scope(line.scope), line.name):
        raise Invalid("name", "is not what the scope ends with: use the name that was made a slug")
    if isinstance(line, Talk) and who.agent is not None and line.agent != who.agent:
        raise Invalid("agent", "the transcript is another agent's")
    if isinstance(line, MemoryLine):
        check_size("content", line.content, settings.content_limit, "content_limit")
    if isinstance(line, TurnLine):
        check_size("content", line.content, settings.turn_limit, "turn_limit")


def _derived(line: Record, value: dict[str, Any]) -> dict[str, Any]:
    """What is not carried, because it follows from the rest, and names in their one form."""
    if isinstance(line, MemoryLine):
        return _of_memory(line)
    if isinstance(line, TurnLine):
        silent = line.role == "tool" or line.content == LEFT_OUT
        return {"text": "" if silent else index_text(line.content)}
    if isinstance(line, SummaryLine | Talk | NameLine):
        return {"scope": parse_scope(line.scope)}
    if isinstance(line, SettingLine):
        return _of_setting(line)
    if isinstance(line, VersionLine):
        return {"state": line.state, "text": _words_then(line)}
    return _turned(value) if isinstance(line, EdgeLine) else {}


def _of_setting(line: SettingLine) -> dict[str, Any]:
    value = line.value.model_dump(exclude_none=True)
    with naming("value"):
        if (line.name == "llm") is not isinstance(line.value, SetLlm):
            raise Invalid("value", f"is not of the setting {line.name}")
        if line.name != "llm":
            (DEFAULT if line.name == "context" else LIMITS).changed(value)
    return {"project": _project(line), "value": value}


def _project(line: SettingLine) -> str:
    return line.project if line.project == TENANT_WIDE else slug(line.project)


def _words_then(line: VersionLine) -> str:
    tags = line.state.get("tags") or []
    said = (line.state.get("key"), line.content, *(tags if isinstance(tags, list) else []))
    return index_text(" ".join(str(one) for one in said if one))


def _of_memory(line: MemoryLine) -> dict[str, Any]:
    if is_blank(line.content):
        raise Invalid("content", "is empty")
    if line.valid_from and line.valid_to and line.valid_to < line.valid_from:
        raise Invalid("valid_to", "lies before valid_from")
    kind = parse_kind(line.kind)
    silent = kind in ANCHORS or line.merged_into
    words = " ".join(filter(None, (line.key, line.content, *line.tags)))
    return {
        "scope": parse_scope(line.scope),
        "kind": kind.value,
        "hash": content_hash(line.content),
        "text": "" if silent else index_text(words),
        "tags": sorted(set(line.tags)),
        "turns": sorted({str(turn) for turn in line.turns}),
        "metadata": line.metadata,
    }


def _turned(value: dict[str, Any]) -> dict[str, Any]:
    """`A caused_by B` is stored as `B led_to A`."""
    if value["src"] == value["dst"]:
        raise Invalid("dst", "an edge leads from a memory to itself")
    with naming("kind"):
        kind = parse_edge_kind(value["kind"])
    meta = {"meta": value.get("meta") or {}}
    if kind is EdgeKind.CAUSED_BY:
        return {"kind": "led_to", "src": value["dst"], "dst": value["src"], **meta}
    return {"kind": kind.value, **meta}
