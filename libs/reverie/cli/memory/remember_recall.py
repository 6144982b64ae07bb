"""`reverie remember`, `recall`, `context`, `preflow` and `memories`."""

from __future__ import annotations

import json as jsonlib
import re
import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from reverie.cli.app import common as options
from reverie.cli.app.common import FAILED, Home, Json, Sets
from reverie.cli.app.gateway_client import GatewayClient, create_client
from reverie.cli.app.output import (
    age_cell,
    build_table,
    one_line,
    print_result,
    print_warnings,
    short_id,
    short_id_cell,
    text_cell,
)
from reverie.domain.core.errors import InvalidInput, ReverieError

BATCH_SIZE = 500
"""As many as one call takes."""
_ITEM_PREFIX = re.compile(r"^items\.\d+\.")
"""Where in the call a field was: a person has the line."""


def remember_lines(client: GatewayClient, shared: Mapping[str, Any], json: bool) -> None:
    """Stores each line of the content, with what was said of all of them.

    Ends with `FAILED` where one was refused. Raises `InvalidInput` naming a line that is no object.
    """
    items = dict(_parse_lines(str(shared["content"]), {**shared, "content": None}))
    payloads, results = list(items.values()), list[dict[str, Any]]()
    for start in range(0, len(payloads), BATCH_SIZE):
        body = {"items": payloads[start : start + BATCH_SIZE]}
        results += client.request("POST", "/v1/remember/batch", body=body)["items"]
    refused = [
        (line_number, result)
        for line_number, result in zip(items, results, strict=True)
        if "code" in result
    ]
    if not json:
        print_warnings(
            [
                f"{line_number}: {result['code']}: {_ITEM_PREFIX.sub('', result['detail'])}"
                for line_number, result in refused
            ]
        )
    messages = [
        f"{result['status']} {short_id(result['id'])}" for result in results if "code" not in result
    ]
    print_result(results, json, *messages)
    if refused:
        raise typer.Exit(FAILED)


def _parse_lines(text: str, shared: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """What each line holds, by the number of the line."""
    defaults = {name: value for name, value in shared.items() if value is not None}
    for line_number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("{"):
            yield line_number, {**defaults, "content": line.strip()}
            continue
        try:
            yield line_number, {**defaults, **jsonlib.loads(line)}
        except jsonlib.JSONDecodeError as error:
            reason = f"is no JSON: {error.msg} (column {error.colno})"
            raise InvalidInput(f"line {line_number}", reason) from None


Content = Annotated[str, typer.Argument(help="One fact, understandable alone; - reads it.")]
Query = Annotated[list[str], typer.Argument(help="Plain words; identifiers and paths help.")]
Kind = Annotated[str | None, typer.Option("--kind", "-k", help="As decision, convention, bug.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", "-k", help="Only of this kind.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="May be repeated.")]
Key = Annotated[str | None, typer.Option("--key", help="One active memory stands under a key.")]
SupersedeReason = Annotated[
    str | None, typer.Option("--because", help="Why it replaces what stands under the key.")
]
Files = Annotated[list[str] | None, typer.Option("--file", "-f", help="A path it is about.")]
OpenFiles = Annotated[list[str] | None, typer.Option("--file", "-f", help="A file that is open.")]
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
HitLimit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="How many at most.")]
Archived = Annotated[bool, typer.Option("--archived", help="Also what decayed.")]
Turns = Annotated[bool, typer.Option("--turns", help="Also raw turns of conversations.")]


class ContextFormat(StrEnum):
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
    supersede_reason: SupersedeReason = None,
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
    client, text = create_client(home, sets, project), _read_content(content)
    body = {
        "content": text,
        "kind": kind,
        "scope": scope or (f"project/{client.project}" if client.project else None),
        "tags": tag,
        "key": key,
        "supersede_reason": supersede_reason,
        "git": _git_files(file or []) if lines else _locate_in_clone(text, file or []),
        "steps": step,
        "session": client.resolve_session_id(session) if session else None,
        "confidence": confidence,
        "pinned": pin or None,
    }
    if lines:
        remember_lines(client, _drop_unset(body), json)
        return
    response = client.request("POST", "/v1/remember", body=_drop_unset(body))
    notices = [f"{n} secrets were taken out of it"] if (n := response["redactions"]) else []
    print_warnings([*notices, *response["hints"]])
    print_result(
        response,
        json,
        f"{response['status']} {short_id(response['id'])}, version {response['version']}",
    )


def _locate_in_clone(text: str, files: list[str]) -> dict[str, Any] | None:
    """Where in the clone here a text belongs, edits included; else the files that are given."""
    from reverie.domain.entities.file_paths import extract_paths

    if not files and not extract_paths(text):
        return None
    from reverie.agent.git.anchoring import locate_text
    from reverie.agent.git.repository import open_repository

    try:
        location = locate_text(open_repository(Path.cwd()), text, files)
    except ReverieError:
        location = None
    if location is None or not location.blobs:
        return _git_files(files)
    document = location.model_dump(mode="json", exclude_defaults=True)
    return document | {"files": list(dict.fromkeys([*files, *location.files]))}


def _git_files(files: list[str]) -> dict[str, Any] | None:
    return {"files": files} if files else None


def recall(
    query: Query,
    limit: HitLimit = 10,
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
    client = create_client(home, sets, project)
    default_project = None if scope or session else client.project
    body = {
        "query": " ".join(query),
        "limit": limit,
        "kinds": kind,
        "scopes": scope,
        "project": default_project,
        "tags": tag,
        "files": file,
        "session": client.resolve_session_id(session) if session else None,
        "as_of": as_of,
        "budget_tokens": budget,
        "include": [name for name, is_set in (("archived", archived), ("turns", turns)) if is_set],
    }
    response = client.request("POST", "/v1/recall", body=_drop_unset(body))
    print_warnings([f"not asked: {component}" for component in response["degraded"]])
    print_result(response, json, build_table(response["memories"], _HIT_COLUMNS))


def _format_hit(memory: Mapping[str, Any]) -> str:
    """The memory on some lines, and what stands against it."""
    warning = (
        f"\n! {memory['stale_reason'] or 'may be stale'}" if memory["staleness"] >= 0.3 else ""
    )
    status = "" if memory["status"] == "active" else f"[{memory['status']}] "
    return f"{status}{one_line(memory['snippet'] or memory['content'], 400)}{warning}"


_HIT_COLUMNS: dict[str, Any] = {
    "id": short_id_cell("id"),
    "score": "score",
    "kind": "kind",
    "scope": "scope",
    "when": age_cell("created_at"),
    "memory": _format_hit,
}


def context(
    project: options.Project = None,
    session: options.Session = None,
    scope: Scopes = None,
    file: OpenFiles = None,
    budget: Budget = None,
    format: Annotated[
        ContextFormat, typer.Option("--format", help="What to print.")
    ] = ContextFormat.MARKDOWN,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """What to know before starting: conventions, tasks, decisions, warnings.

    Example: [bold]reverie context --project shop --format markdown[/]
    """
    client = create_client(home, sets, project)
    session_id = client.resolve_session_id(session) if session else None
    query = {
        "project": None if session or scope else client.project,
        "session": session_id,
        "scope": scope,
        "files": file,
        "budget_tokens": budget,
    }
    response = client.request("GET", "/v1/context", query)
    print_warnings([f"not asked: {item}" for item in response["degraded"]])
    print_warnings([item["message"] for item in response["warnings"]])
    markdown = response["markdown"].rstrip() or "Nothing is known here yet."
    print_result(response, json or format is ContextFormat.JSON, markdown)


def preflow(
    session: Annotated[str, typer.Argument(help="A session's id, also short.")],
    query: Query,
    file: OpenFiles = None,
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
    client = create_client(home, sets)
    body = {
        "session": client.resolve_session_id(session),
        "query": " ".join(query),
        "files": file,
        "budget_tokens": budget,
        "compacted": compacted,
        "again": again,
    }
    response = client.request("POST", "/v1/preflow", body=_drop_unset(body))
    print_warnings([f"not asked: {component}" for component in response["degraded"]])
    print_result(response, json, response["markdown"].rstrip() or "Nothing new.")


def list_memories(
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
    client = create_client(home, sets)
    query = {"kind": kind, "scope": scope or _project_scope(client), "status": status, "tag": tag}
    items = client.list_items("/v1/memories", query, limit)
    print_result(items, json, build_table(items, _LIST_COLUMNS))


_LIST_COLUMNS: dict[str, Any] = {
    "id": short_id_cell("id"),
    "kind": "kind",
    "scope": "scope",
    "sure": "confidence",
    "when": age_cell("created_at"),
    "memory": text_cell("content", 200),
}


def _project_scope(client: GatewayClient) -> str | None:
    return f"project/{client.project}" if client.project else None


def _read_content(content: str) -> str:
    """The content, read from standard input where it is `-`."""
    text = sys.stdin.read() if content == "-" else content
    if not text.strip():
        raise InvalidInput("content", "is empty")
    return text


def _drop_unset(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}
