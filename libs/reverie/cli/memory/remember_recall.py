"""`reverie remember`, `recall`, `context`, `preflow` and `memories`."""

from __future__ import annotations

import json as jsonlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from reverie.cli.app.errors import FAILED
from reverie.cli.app.gateway_client import GatewayClient, create_client
from reverie.cli.app.options import (
    common_options,
    drop_unset,
    limit_option,
    project_option,
    scope_option,
    session_option,
)
from reverie.cli.app.output import (
    age_cell,
    build_table,
    one_line,
    print_result,
    print_warnings,
    read_text,
    short_id,
    short_id_cell,
    text_cell,
)
from reverie.domain.core.errors import InvalidInput, ReverieError

BATCH_SIZE = 500
"""The largest number of memories in one call."""
_ITEM_PREFIX = re.compile(r"^items\.\d+\.")
"""The position in the call, which means nothing to a user, who is shown the line instead."""


def remember_lines(client: GatewayClient, shared: Mapping[str, Any], json: bool) -> None:
    """Stores each line of the content as a memory with the shared fields.

    Exits with `FAILED` if a line was refused. Raises `InvalidInput` for a line that is not JSON.
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
        raise click.exceptions.Exit(FAILED)


def _parse_lines(text: str, shared: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The fields of each line, with the number of the line."""
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
            reason = f"is not JSON: {error.msg} (column {error.colno})"
            raise InvalidInput(f"line {line_number}", reason) from None


@click.command("remember")
@click.argument("content", help="One fact, clear without context; - reads standard input.")
@click.option("--kind", "-k", help="The kind, such as decision, convention or bug.")
@scope_option
@project_option
@click.option("--tag", "-t", multiple=True, help="A tag; may be repeated.")
@click.option("--key", help="A key; a new memory replaces the active one with the same key.")
@click.option("--supersede-reason", help="Why the memory replaces the one with the same key.")
@click.option("--file", "-f", multiple=True, help="A file that it is about; may be repeated.")
@click.option("--step", multiple=True, help="A step of a skill; may be repeated, in order.")
@session_option
@click.option("--confidence", type=click.FloatRange(min=0, max=1), help="The confidence, 0 to 1.")
@click.option("--pin", is_flag=True, help="Pin the memory: every session starts with it.")
@click.option(
    "--lines", is_flag=True, help="Store each line as a memory: a fact, or a JSON object."
)
@common_options
def remember(
    content: str,
    kind: str | None,
    scope: str | None,
    project: str | None,
    tag: tuple[str, ...],
    key: str | None,
    supersede_reason: str | None,
    file: tuple[str, ...],
    step: tuple[str, ...],
    session: str | None,
    confidence: float | None,
    pin: bool,
    lines: bool,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Store one fact as a memory. Without a kind, rules choose it.

    The scope is the project's, or the key's outside of a project. In a clone,
    the lines and symbols of the files it mentions are sent too; source code is not.
    With --lines, each line is stored or refused on its own.

    Example: reverie remember "We deploy on Thursdays." -k convention
    """
    client, text = create_client(home, sets, project), read_text(content)
    if not text.strip():
        raise InvalidInput("content", "is empty")
    body = {
        "content": text,
        "kind": kind,
        "scope": scope or client.project_scope,
        "tags": tag,
        "key": key,
        "supersede_reason": supersede_reason,
        "git": _git_files(file) if lines else _locate_in_clone(text, file),
        "steps": step,
        "session": client.resolve_session_id(session) if session else None,
        "confidence": confidence,
        "pinned": pin or None,
    }
    if lines:
        remember_lines(client, drop_unset(body), json)
        return
    response = client.request("POST", "/v1/remember", body=drop_unset(body))
    notices = [f"{n} secrets were redacted"] if (n := response["redactions"]) else []
    print_warnings([*notices, *response["hints"]])
    print_result(
        response,
        json,
        f"{response['status']} {short_id(response['id'])}, version {response['version']}",
    )


def _locate_in_clone(text: str, files: Sequence[str]) -> dict[str, Any] | None:
    """The code in the current clone that a text refers to; without a clone, the given files."""
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


def _git_files(files: Sequence[str]) -> dict[str, Any] | None:
    return {"files": list(files)} if files else None


@click.command("recall")
@click.argument("query", nargs=-1, required=True, help="The question; identifiers and paths help.")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=1, max=100),
    default=10,
    help="The largest number of items to show.",
)
@click.option("--kind", "-k", multiple=True, help="Only this kind; may be repeated.")
@click.option("--scope", multiple=True, help="Only this scope; may be repeated.")
@project_option
@click.option("--tag", "-t", multiple=True, help="A tag; may be repeated.")
@click.option("--file", "-f", multiple=True, help="A file that it is about; may be repeated.")
@session_option
@click.option("--as-of", help="Search the state of that time, such as 2026-01-31T10:00:00Z.")
@click.option("--budget", type=click.IntRange(min=50, max=100000), help="The token budget.")
@click.option("--archived", is_flag=True, help="Also search archived memories.")
@click.option("--turns", is_flag=True, help="Also search raw turns of conversations.")
@common_options
def recall(
    query: tuple[str, ...],
    limit: int,
    kind: tuple[str, ...],
    scope: tuple[str, ...],
    project: str | None,
    tag: tuple[str, ...],
    file: tuple[str, ...],
    session: str | None,
    as_of: str | None,
    budget: int | None,
    archived: bool,
    turns: bool,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Find memories that answer a question.

    In a project, it searches the project and the scopes that apply to all projects.

    Example: reverie recall when do we deploy
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
    response = client.request("POST", "/v1/recall", body=drop_unset(body))
    print_warnings([f"not available: {name}" for name in response["degraded"]])
    print_result(response, json, build_table(response["memories"], _HIT_COLUMNS))


def _format_hit(memory: Mapping[str, Any]) -> str:
    """The memory, with a warning if it may be stale."""
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
    "age": age_cell("created_at"),
    "memory": _format_hit,
}


@click.command("context")
@project_option
@session_option
@click.option("--scope", multiple=True, help="Only this scope; may be repeated.")
@click.option("--file", "-f", multiple=True, help="An open file; may be repeated.")
@click.option("--budget", type=click.IntRange(min=50, max=100000), help="The token budget.")
@click.option(
    "--format",
    type=click.Choice(["markdown", "json"]),
    default="markdown",
    help="The output format.",
)
@common_options
def context(
    project: str | None,
    session: str | None,
    scope: tuple[str, ...],
    file: tuple[str, ...],
    budget: int | None,
    format: str,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Show the context of a new session: conventions, tasks, decisions, warnings.

    Example: reverie context --project shop --format markdown
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
    print_warnings([f"not available: {name}" for name in response["degraded"]])
    print_warnings([item["message"] for item in response["warnings"]])
    markdown = response["markdown"].rstrip() or "No memories yet."
    print_result(response, json or format == "json", markdown)


@click.command("preflow")
@click.argument("session", help="A session's id, in full or shortened.")
@click.argument("query", nargs=-1, required=True, help="The question; identifiers and paths help.")
@click.option("--file", "-f", multiple=True, help="An open file; may be repeated.")
@click.option("--budget", type=click.IntRange(min=50, max=100000), help="The token budget.")
@click.option("--compacted", is_flag=True, help="The agent lost its earlier context.")
@click.option(
    "--include-sent", is_flag=True, help="Include memories that the session was given before."
)
@common_options
def preflow(
    session: str,
    query: tuple[str, ...],
    file: tuple[str, ...],
    budget: int | None,
    compacted: bool,
    include_sent: bool,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Show the memories for the next turn of a session, without those it has seen.

    Example: reverie preflow 7c2f01aa "why does checkout fail?"
    """
    client = create_client(home, sets)
    body = {
        "session": client.resolve_session_id(session),
        "query": " ".join(query),
        "files": file,
        "budget_tokens": budget,
        "compacted": compacted,
        "again": include_sent,
    }
    response = client.request("POST", "/v1/preflow", body=drop_unset(body))
    print_warnings([f"not available: {name}" for name in response["degraded"]])
    print_result(response, json, response["markdown"].rstrip() or "No new memories.")


@click.command("memories")
@click.option("--kind", "-k", multiple=True, help="Only this kind; may be repeated.")
@scope_option
@click.option(
    "--status", multiple=True, help="A status, such as archived or superseded; may be repeated."
)
@click.option("--tag", "-t", help="Only memories with this tag.")
@limit_option(50)
@common_options
def list_memories(
    kind: tuple[str, ...],
    scope: str | None,
    status: tuple[str, ...],
    tag: str | None,
    limit: int,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """List memories, newest first.

    Example: reverie memories --kind decision --scope project/shop
    """
    client = create_client(home, sets)
    query = {"kind": kind, "scope": scope or client.project_scope, "status": status, "tag": tag}
    items = client.list_items("/v1/memories", query, limit)
    print_result(items, json, build_table(items, _LIST_COLUMNS))


_LIST_COLUMNS: dict[str, Any] = {
    "id": short_id_cell("id"),
    "kind": "kind",
    "scope": "scope",
    "confidence": "confidence",
    "age": age_cell("created_at"),
    "memory": text_cell("content", 200),
}
