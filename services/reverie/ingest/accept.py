"""From what a client sent to what is stored: validated, redacted, classified, hashed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from json import dumps
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from reverie.contracts.memories import EdgeTo, GitPlace, Remember, Symbol
from reverie.contracts.sessions import NewTurn as TurnBody
from reverie.domain.access import Principal
from reverie.domain.blank import is_blank
from reverie.domain.classify import classify, hints
from reverie.domain.edges import parse_edge_kind
from reverie.domain.errors import Invalid, TooLarge
from reverie.domain.fence import LEFT_OUT, strip
from reverie.domain.fields import naming
from reverie.domain.ids import new_id
from reverie.domain.kinds import ANCHORS, TREATMENT, Kind, parse_kind
from reverie.domain.memory import NewEdge, NewMemory, content_hash
from reverie.domain.redaction import redact, redact_value
from reverie.domain.said import MADE_KEYS, memory_words, turn_words
from reverie.domain.scopes import home_levels, parse_scope, project_of, scope_at, scope_names
from reverie.domain.skills import with_steps
from reverie.domain.state import state_hints
from reverie.domain.turns import condense_tool
from reverie.ingest.settings import IngestSettings
from reverie.store.sessions import NewTurn

MINOR = "minor correction"
_TEXTS = ("content", "steps", "summary", "tags", "key", "supersede_reason", "metadata", "git")
_MADE_KEY = "keys beginning with file:, session:, entity: or topic: are the system's own"


@dataclass(frozen=True)
class Accepted:
    """A memory ready to be written, how many secrets were replaced in it, and soft hints."""

    memory: NewMemory
    redactions: int
    hints: tuple[str, ...]


def accept(
    body: Remember, who: Principal, settings: IngestSettings, told_by: str | None = None
) -> Accepted:
    """`told_by` is the agent of the session named, whose memory it is where the key has none.

    Raises `Invalid`, `TooLarge` or `Forbidden`, naming the field.
    """
    whole = with_steps(body.content, body.steps) if body.steps else body.content
    check_size("content", whole, settings.content_limit, "content_limit")
    scope = parse_scope(body.scope) if body.scope else _home(who, body.git)
    who.check_write(scope)
    check_validity(body.valid_from, body.valid_to)
    _check_key(body.key, body.supersede_reason, body.soft)
    clean, redactions = _redacted(_unrecalled(body))
    kind = _kind(clean)
    clean = _stepwise(clean, kind)
    memory = NewMemory(
        id=new_id(),
        scope=scope,
        kind=kind,
        content=clean.content,
        content_hash=content_hash(clean.content),
        words=memory_words(clean.key, clean.content, clean.tags),
        tier=TREATMENT[kind].tier,
        confidence=clean.confidence,
        key=clean.key,
        supersede_reason=clean.supersede_reason or (MINOR if clean.soft else None),
        soft=clean.soft,
        summary=clean.summary,
        tags=tuple(dict.fromkeys(clean.tags)),
        pinned=clean.pinned,
        session=clean.session,
        agent=who.agent or told_by,
        edges=tuple(_edge(place, edge) for place, edge in enumerate(clean.edges)),
        git=_git(clean.git),
        metadata=clean.metadata,
        valid_from=clean.valid_from,
        valid_to=clean.valid_to,
        scope_names=scope_names(body.scope) if body.scope else {},
    )
    return Accepted(memory, redactions, (*hints(clean.content, kind), *state_hints(clean.content)))


def _home(who: Principal, place: GitPlace | None) -> str:
    """Where a memory goes that names no scope: to its branch in the key's project, if the key may
    write there."""
    home = who.default_scope()
    if place is None or place.branch is None or home != f"project/{project_of(home)}":
        return home
    branch = scope_at(home_levels(project_of(home), None, redact(place.branch).text))
    return branch if who.may_write(branch) else home


def check_size(field: str, text: str, limit: int, setting: str) -> None:
    """Raises `TooLarge` where the text holds more bytes than the setting allows."""
    size = len(text.encode())
    if size > limit:
        raise TooLarge(field, size, limit, setting)


def check_validity(start: datetime | None, stop: datetime | None) -> None:
    """Raises `Invalid` where a time of validity ends before it begins."""
    if start and stop and stop < start:
        raise Invalid("valid_to", "lies before valid_from")


def _check_key(key: str | None, supersede_reason: str | None, soft: bool) -> None:
    if key is not None and key.lower().startswith(MADE_KEYS):
        raise Invalid("key", _MADE_KEY)
    if supersede_reason is not None and key is None:
        raise Invalid("supersede_reason", "says why a key is replaced: give the key too")
    if soft and key is None:
        raise Invalid("soft", "corrects what stands under a key: give the key too")


def _unrecalled(body: Remember) -> Remember:
    """The same body without the memory that was recalled into it."""
    content, summary = strip(body.content), strip(body.summary or "")
    if is_blank(content):
        raise Invalid("content", "is recalled memory and nothing else: it is known already")
    steps = [strip(step).strip() for step in body.steps]
    for place, step in enumerate(steps):
        if is_blank(step):
            raise Invalid(f"steps.{place}", "is recalled memory and nothing else")
    own = {"content": content.strip(), "steps": steps, "summary": summary.strip() or None}
    return body.model_copy(update=own)


def _redacted(body: Remember) -> tuple[Remember, int]:
    """The same body without secrets in any text of it, and how many were replaced."""
    given = {name for name in _TEXTS if getattr(body, name)}
    clean = redact_value(body.model_dump(include=given, mode="json"))
    edges = redact_value([edge.metadata for edge in body.edges])
    linked = [
        edge.model_copy(update={"metadata": metadata})
        for edge, metadata in zip(body.edges, edges.value, strict=True)
    ]
    values: dict[str, Any] = {
        **clean.value,
        "git": _place(clean.value.get("git"), body.git),
        "edges": linked,
    }
    return body.model_copy(update=values), clean.count + edges.count


def _place(git: dict[str, Any] | None, given: GitPlace | None) -> GitPlace | None:
    """Not validated again: a mark that stands for a secret is no commit and no short path."""
    if git is None or given is None:
        return None
    lines = {path: [tuple(span) for span in spans] for path, spans in git["lines"].items()}
    symbols = {
        path: [Symbol.model_construct(name=s["name"], lines=tuple(s["lines"])) for s in those]
        for path, those in git["symbols"].items()
    }
    return GitPlace.model_construct(
        **{
            **git,
            "lines": lines,
            "symbols": symbols,
            "committed_at": given.committed_at,
        }
    )


def _stepwise(body: Remember, kind: Kind) -> Remember:
    """A skill with its steps in its content, so that they are found, and beside it in order."""
    if not body.steps:
        return body
    if kind is not Kind.SKILL:
        raise Invalid("steps", f"only a skill has steps, not a {kind.value}")
    metadata = {**body.metadata, "steps": body.steps}
    content = with_steps(body.content, body.steps)
    return body.model_copy(update={"content": content, "metadata": metadata})


def _kind(body: Remember) -> Kind:
    unsaid = Kind.SKILL if body.steps else classify(body.content)
    kind = parse_kind(body.kind) if body.kind else unsaid
    if kind in ANCHORS:
        raise Invalid("kind", f"{kind.value} nodes are made from what memories touch")
    return kind


def _edge(place: int, edge: EdgeTo) -> NewEdge:
    with naming(f"edges.{place}.type"):
        kind = parse_edge_kind(edge.type)
    return NewEdge(edge.to, kind, edge.weight, edge.metadata)


def _git(place: GitPlace | None) -> dict[str, Any] | None:
    if place is None:
        return None
    told = place.model_dump(mode="json")
    for name in ("lines", "symbols", "blobs"):
        told[name] = {path.removeprefix("./"): one for path, one in told[name].items()}
    told["files"] = [path.removeprefix("./") for path in place.files]
    return {name: value for name, value in told.items() if value}


def accept_turn(
    place: int, turn: TurnBody, settings: IngestSettings, request: str | None
) -> tuple[NewTurn, int]:
    """A turn without secrets and without recalled memory, a tool's output cut to a trace.

    With it comes how many secrets were replaced. A turn that was nothing but recalled memory
    keeps its place, with a note in it. `request` is the idempotency key of the call.
    Raises `TooLarge`.
    """
    own = strip(turn.content)
    clean, tool = redact(LEFT_OUT if is_blank(own) else own), redact(turn.tool or "")
    content = clean.text
    if turn.role == "tool":
        content = condense_tool(tool.text or None, content, settings.tool_turn_chars)
    else:
        check_size(f"turns.{place}.content", turn.content, settings.turn_limit, "turn_limit")
    stored = NewTurn(
        id=new_id(),
        role=turn.role,
        content=content,
        words=turn_words(turn.role, content),
        tool=tool.text or None,
        external_id=redact(turn.external_id or "").text or _stand_in(request, place, turn, content),
        at=turn.at,
    )
    return stored, clean.count + tool.count


def _stand_in(request: str | None, place: int, turn: TurnBody, content: str) -> str | None:
    """An external id for a turn without one, the same whenever the same request is sent again.

    A process that dies after its commit leaves the idempotency key without an answer; once that
    claim has run out the request is carried out again, and finds what it stored. What is sent is
    part of the id, so that a key used again much later hides nothing new.
    """
    if request is None:
        return None
    at = turn.at.isoformat() if turn.at else None
    said = dumps([request, place, turn.role, at, content])
    return f"request:{uuid5(NAMESPACE_URL, said)}"
