"""`reverie remember`, `recall`, `context` and `preflow`: what goes in and what comes out."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from reverie.cli import options
from reverie.cli.asking import Desk, desk
from reverie.cli.batches import remember_lines
from reverie.cli.common import Home, Json, Sets
from reverie.cli.shown import ago, clipped, line_of, short, short_of, table, tell, warn
from reverie.domain.errors import Invalid, ReverieError

Content = Annotated[str, typer.Argument(help="One fact, understandable alone; - reads it.")]
Query = Annotated[list[str], typer.Argument(help="Plain words; identifiers and paths help.")]
Kind = Annotated[str | None, typer.Option("--kind", "-k", help="As decision, convention, bug.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", "-k", help="Only of this kind.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="May be repeated.")]
Key = Annotated[str | None, typer.Option("--key", help="One active memory stands under a key.")]
Because = Annotated[
    str | None, typer.Option("--because", help="Why it replaces what stands under the key.")
]
Files = Annotated[list[str] | None, typer.Option("--file", "-f", help="A path it is about.")]
Open = Annotated[list[str] | None, typer.Option("--file", "-f", help="A file that is open.")]
Scopes = Annotated[list[str] | None, typer.Option("--scope", help="Only in this scope.")]
Steps = Annotated[list[str] | None, typer.Option("--step", help="A step of a skill, in order.")]
Pinned = Annotated[bool, typer.Option("--pin", help="Always shown at session start.")]
Confidence = Annotated[
    float | None, typer.Option("--confidence", min=0, max=1, help="How sure it is, 0 to 1.")
]
Budget = Annotated[
    int | None, typer.Option("--budget", min=50, max=100_000, help="Tokens at most.")
]
AsOf = Annotated[
    str | None, typer.Option("--as-of", help="What was known then, as 2026-01-31T10:00:00Z.")
]
Hits = Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="How many at most.")]
Archived = Annotated[bool, typer.Option("--archived", help="Also what decayed.")]
Turns = Annotated[bool, typer.Option("--turns", help="Also raw turns of conversations.")]


class Format(StrEnum):
    """How the block is printed."""

    MARKDOWN = "markdown"
    JSON = "json"


Lines = Annotated[
    bool,
    typer.Option("--lines", help="Each line is one: a fact, or a JSON object of its fields."),
]


def remember(
    content: Content,
    kind: Kind = None,
    scope: options.Scope = None,
    project: options.Project = None,
    tag: Tags = None,
    key: Key = None,
    because: Because = None,
    file: Files = None,
    step: Steps = None,
    session: options.Session = None,
    confidence: Confidence = None,
    pin: Pinned = False,
    lines: Lines = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Keep one fact. Without a kind, rules find it.

    In a project it goes to the project, else to the key's scope. In a clone,
    the lines and symbols of files that it speaks of are sent along, no source.
    With --lines, many at once, each kept or refused by itself.

    Example: [bold]reverie remember "We deploy on Thursdays." -k convention[/]
    """
    at, text = desk(home, sets, project), _text(content)
    body = {
        "content": text,
        "kind": kind,
        "scope": scope or (f"project/{at.project}" if at.project else None),
        "tags": tag,
        "key": key,
        "supersede_reason": because,
        "git": _named(file or []) if lines else _place(text, file or []),
        "steps": step,
        "session": at.session(session) if session else None,
        "confidence": confidence,
        "pinned": pin or None,
    }
    if lines:
        remember_lines(at, _given(body), json)
        return
    done = at.ask("POST", "/v1/remember", body=_given(body))
    notes = [f"{n} secrets were taken out of it"] if (n := done["redactions"]) else []
    warn([*notes, *done["hints"]])
    tell(done, json, f"{done['status']} {short(done['id'])}, version {done['version']}")


def _place(text: str, files: list[str]) -> dict[str, Any] | None:
    """Where in the clone here a text belongs, edits included; else the files that are given."""
    from reverie.domain.anchors import paths

    if not files and not paths(text):
        return None
    from reverie.agent.anchoring import place_of
    from reverie.agent.git_repo import open_repo

    try:
        found = place_of(open_repo(Path.cwd()), text, files)
    except ReverieError:
        found = None
    if found is None or not found.blobs:
        return _named(files)
    told = found.model_dump(mode="json", exclude_defaults=True)
    return told | {"files": list(dict.fromkeys([*files, *found.files]))}


def _named(files: list[str]) -> dict[str, Any] | None:
    return {"files": files} if files else None


def recall(
    query: Query,
    limit: Hits = 10,
    kind: Kinds = None,
    scope: Scopes = None,
    project: options.Project = None,
    tag: Tags = None,
    file: Files = None,
    session: options.Session = None,
    as_of: AsOf = None,
    budget: Budget = None,
    archived: Archived = False,
    turns: Turns = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Find what is known.

    In a project it looks there, and where the key's other memories of all projects are.

    Example: [bold]reverie recall when do we deploy[/]
    """
    at = desk(home, sets, project)
    named = None if scope or session else at.project
    body = {
        "query": " ".join(query),
        "limit": limit,
        "kinds": kind,
        "scopes": scope,
        "project": named,
        "tags": tag,
        "files": file,
        "session": at.session(session) if session else None,
        "as_of": as_of,
        "budget_tokens": budget,
        "include": [name for name, on in (("archived", archived), ("turns", turns)) if on],
    }
    found = at.ask("POST", "/v1/recall", body=_given(body))
    warn([f"not asked: {one}" for one in found["degraded"]])
    tell(found, json, table(found["memories"], _HITS))


def _marked(one: Mapping[str, Any]) -> str:
    """The memory on some lines, and what stands against it."""
    doubt = f"\n! {one['stale_reason'] or 'may be stale'}" if one["staleness"] >= 0.3 else ""
    status = "" if one["status"] == "active" else f"[{one['status']}] "
    return f"{status}{line_of(one['snippet'] or one['content'], 400)}{doubt}"


_HITS: dict[str, Any] = {
    "id": short_of("id"),
    "score": "score",
    "kind": "kind",
    "scope": "scope",
    "when": ago("created_at"),
    "memory": _marked,
}


def context(
    project: options.Project = None,
    session: options.Session = None,
    scope: Scopes = None,
    file: Open = None,
    budget: Budget = None,
    format: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.MARKDOWN,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """What to know before starting: conventions, tasks, decisions, warnings.

    Example: [bold]reverie context --project shop --format markdown[/]
    """
    at = desk(home, sets, project)
    whole = at.session(session) if session else None
    query = {
        "project": None if session or scope else at.project,
        "session": whole,
        "scope": scope,
        "files": file,
        "budget_tokens": budget,
    }
    found = at.ask("GET", "/v1/context", query)
    warn([f"not asked: {one}" for one in found["degraded"]])
    warn([one["message"] for one in found["warnings"]])
    markdown = found["markdown"].rstrip() or "Nothing is known here yet."
    tell(found, json or format is Format.JSON, markdown)


def preflow(
    session: Annotated[str, typer.Argument(help="A session's id, also short.")],
    query: Query,
    file: Open = None,
    budget: Budget = None,
    compacted: Annotated[
        bool, typer.Option("--compacted", help="What was given before is gone.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what was given already.")] = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """What an agent is given before a turn: only what is new to its session.

    Example: [bold]reverie preflow 7c2f01aa "why does checkout fail?"[/]
    """
    at = desk(home, sets)
    body = {
        "session": at.session(session),
        "query": " ".join(query),
        "files": file,
        "budget_tokens": budget,
        "compacted": compacted,
        "again": again,
    }
    found = at.ask("POST", "/v1/preflow", body=_given(body))
    warn([f"not asked: {one}" for one in found["degraded"]])
    tell(found, json, found["markdown"].rstrip() or "Nothing new.")


def memories(
    kind: Kinds = None,
    scope: options.Scope = None,
    status: Annotated[
        list[str] | None, typer.Option("--status", help="As archived or superseded.")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", "-t", help="Only with this tag.")] = None,
    limit: options.Limit = 50,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """List memories, newest first.

    Example: [bold]reverie memories --kind decision --scope project/shop[/]
    """
    at = desk(home, sets)
    query = {"kind": kind, "scope": scope or _scope_of(at), "status": status, "tag": tag}
    found = at.pages("/v1/memories", query, limit)
    tell(found, json, table(found, _LISTED))


_LISTED: dict[str, Any] = {
    "id": short_of("id"),
    "kind": "kind",
    "scope": "scope",
    "sure": "confidence",
    "when": ago("created_at"),
    "memory": clipped("content", 200),
}


def _scope_of(at: Desk) -> str | None:
    return f"project/{at.project}" if at.project else None


def _text(content: str) -> str:
    """The content, read from standard input where it is `-`."""
    text = sys.stdin.read() if content == "-" else content
    if not text.strip():
        raise Invalid("content", "is empty")
    return text


def _given(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}
