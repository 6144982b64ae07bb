"""`reverie remember`, `recall`, `context`, `preflow` and `memories`."""

from __future__ import annotations

import json as jsonlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from reverie.cli.app.errors import FAILED
from reverie.cli.app.gateway_client import GatewayClient
from reverie.cli.app.options import (
    CommonOptions,
    budget_option,
    common_options,
    drop_unset,
    kinds_option,
    limit_option,
    project_option,
    scope_option,
    scopes_option,
    session_argument,
    session_option,
    tier_option,
)
from reverie.cli.app.output import (
    Columns,
    age_cell,
    build_table,
    one_line,
    plural,
    print_degraded,
    print_json,
    print_warnings,
    read_text,
    short_id,
    short_id_cell,
    text_cell,
)
from reverie.cli.memory.predict import touched_options
from reverie.domain.core.errors import InvalidInput, ReverieError
from reverie.domain.text.snippets import best_snippet

BATCH_SIZE = 500
"""The largest number of memories in one call."""
HIT_CHARS = 400
"""Of one memory that was found: a terminal shows several."""
_ITEM_PREFIX = re.compile(r"^items\.\d+\.")
"""The position in the call. It means nothing to a user, who sees the line instead."""

tags_option = click.option("--tag", "-t", "tags", multiple=True, help="A tag; may be repeated.")
files_option = click.option(
    "--file", "-f", "files", multiple=True, help="A file that it is about; may be repeated."
)
open_files_option = click.option(
    "--file", "-f", "files", multiple=True, help="An open file; may be repeated."
)
query_argument = click.argument(
    "query", nargs=-1, required=True, help="The question; identifiers and paths help."
)


@click.command("remember")
@click.argument("content", help="One fact, clear without context; - reads standard input.")
@click.option("--kind", "-k", help="The kind, such as decision, convention or bug.")
@scope_option
@project_option
@tags_option
@click.option("--key", help="A key; one active memory per key: see --supersede-reason.")
@click.option(
    "--supersede-reason", help="Replace the active memory with the same key, for this reason."
)
@files_option
@click.option(
    "--step", "steps", multiple=True, help="A step of a skill; may be repeated, in order."
)
@session_option
@click.option("--confidence", type=click.FloatRange(min=0, max=1), help="The confidence, 0 to 1.")
@tier_option
@click.option("--pin", is_flag=True, help="Pin the memory: every session starts with it.")
@click.option(
    "--lines", is_flag=True, help="Store each line as a memory: a fact, or a JSON object."
)
@common_options
def remember(
    options: CommonOptions,
    content: str,
    scope: str | None,
    project: str | None,
    files: tuple[str, ...],
    session: str | None,
    pin: bool,
    lines: bool,
    **fields: Any,
) -> None:
    """Store one fact as a memory. Without a kind, rules choose it.

    Inside a project it is stored for that project, else in the default scope of
    your API key. What you prefer in all projects is stored for you alone.
    In a clone, it also sends line numbers and names of the functions
    that the text mentions, but no source code.
    With --lines, each line is stored or refused on its own.

    Example: reverie remember "We deploy on Thursdays." -k convention
    """
    client, text = options.gateway(project), read_text(content)
    if not text.strip():
        raise InvalidInput("content", "is empty")
    is_own = not (scope or project or lines) and _is_own(client, text, fields["kind"], files)
    fields |= {
        "scope": scope or (None if is_own else client.project_scope),
        "session": client.resolve_session_id(session),
        "pinned": pin or None,
    }
    if lines:
        shared = drop_unset({**fields, "git": _git_files(files)})
        _remember_lines(options, client, text, shared)
        return
    body = drop_unset({**fields, "content": text, "git": _locate_in_clone(text, files)})
    response = client.request("POST", "/v1/remember", body=body)
    notices = [f"redacted {plural(n, 'secret')}"] if (n := response["redactions"]) else []
    conflicts = (
        f"contradicts {short_id(item['id'])}: {one_line(item['content'], 160)} ({item['reason']})"
        for item in response["conflicts"]
    )
    print_warnings([*notices, *conflicts, *response["hints"]])
    message = f"{response['status']} {short_id(response['id'])}, version {response['version']}"
    options.print_result(response, message)


def _is_own(client: GatewayClient, text: str, kind: str | None, files: Sequence[str]) -> bool:
    """Whether a text is a preference of the user, which belongs to no project."""
    from reverie.domain.core.kinds import parse_kind
    from reverie.domain.extraction.content_checks import classify_kind
    from reverie.domain.extraction.own_memories import is_own_preference

    parsed_kind = parse_kind(kind) if kind else classify_kind(text)
    return is_own_preference(parsed_kind, text, files, client.project)


def _remember_lines(
    options: CommonOptions, client: GatewayClient, text: str, shared: Mapping[str, Any]
) -> None:
    """Stores each line as a memory with the shared fields.

    Exits with `FAILED` if a line was refused. Raises `InvalidInput` for a line that is not JSON.
    """
    items = dict(_parse_lines(text, shared))
    payloads, results = list(items.values()), list[dict[str, Any]]()
    for start in range(0, len(payloads), BATCH_SIZE):
        body = {"items": payloads[start : start + BATCH_SIZE]}
        results += client.request("POST", "/v1/remember/batch", body=body)["items"]
    refused = [
        f"{line}: {result['code']}: {_ITEM_PREFIX.sub('', result['detail'])}"
        for line, result in zip(items, results, strict=True)
        if "code" in result
    ]
    if not options.json:
        print_warnings(refused)
    stored = [result for result in results if "code" not in result]
    messages = [f"{result['status']} {short_id(result['id'])}" for result in stored]
    options.print_result(results, *messages)
    if refused:
        raise click.exceptions.Exit(FAILED)


def _parse_lines(text: str, shared: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The fields of each line, with the number of the line."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("{"):
            yield number, {**shared, "content": line.strip()}
            continue
        try:
            yield number, {**shared, **jsonlib.loads(line)}
        except jsonlib.JSONDecodeError as error:
            reason = f"is not JSON: {error.msg} (column {error.colno})"
            raise InvalidInput(f"line {number}", reason) from None


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
@query_argument
@limit_option(None, 100)
@kinds_option
@scopes_option
@project_option
@tags_option
@files_option
@session_option
@click.option("--as-of", help="Search the state of that time, such as 2026-01-31T10:00:00Z.")
@budget_option
@click.option("--archived", is_flag=True, help="Also search archived memories.")
@click.option("--turns", is_flag=True, help="Also search raw turns of conversations.")
@click.option("--unlinked", is_flag=True, help="Leave out projects that are linked to this one.")
@common_options
def recall(
    options: CommonOptions,
    query: tuple[str, ...],
    scopes: tuple[str, ...],
    project: str | None,
    session: str | None,
    archived: bool,
    turns: bool,
    unlinked: bool,
    **filters: Any,
) -> None:
    """Find memories that answer a question.

    In a project, it searches the project, the projects that are linked to it,
    and the scopes that apply to all projects.

    Example: reverie recall when do we deploy
    """
    client = options.gateway(project)
    body = {
        **filters,
        "query": " ".join(query),
        "scopes": scopes,
        "project": None if scopes or session else client.project,
        "session": client.resolve_session_id(session),
        "linked_projects": False if unlinked else None,
        "include": [name for name, is_set in (("archived", archived), ("turns", turns)) if is_set],
    }
    response = client.request("POST", "/v1/recall", body=drop_unset(body))
    print_degraded(response)
    if response["memories"] and not response["answered"]:
        print_warnings(["no memory answers this for sure: the nearest ones are listed"])
    columns = {**_HIT_COLUMNS, "memory": lambda hit: _format_hit(hit, body["query"])}
    options.print_result(response, build_table(response["memories"], columns))


def _format_hit(memory: Mapping[str, Any], question: str) -> str:
    """The part of the memory that answers, with a warning if it may be stale."""
    warning = (
        f"\n! {memory['stale_reason'] or 'may be stale'}" if memory["staleness"] >= 0.3 else ""
    )
    status = "" if memory["status"] == "active" else f"[{memory['status']}] "
    words = " ".join(re.findall(r"\w+", question))
    shown = best_snippet(memory["snippet"] or memory["content"], words, HIT_CHARS)
    return f"{status}{shown}{warning}"


_HIT_COLUMNS: Columns = {
    "id": short_id_cell("id"),
    "score": "score",
    "relevance": "relevance",
    "kind": "kind",
    "scope": lambda hit: f"{hit['scope']} (linked)" if hit["linked"] else hit["scope"],
    "age": age_cell("created_at"),
}


@click.command("context")
@project_option
@session_option
@scopes_option
@open_files_option
@budget_option
@click.option(
    "--format",
    type=click.Choice(["markdown", "json"]),
    default="markdown",
    help="The output format.",
)
@common_options
def context(
    options: CommonOptions,
    project: str | None,
    session: str | None,
    scopes: tuple[str, ...],
    format: str,
    **filters: Any,
) -> None:
    """Show the context of a new session: conventions, tasks, decisions, warnings.

    Example: reverie context --project shop --format markdown
    """
    client = options.gateway(project)
    query = {
        **filters,
        "project": None if session or scopes else client.project,
        "session": client.resolve_session_id(session),
        "scopes": scopes,
    }
    response = client.request("GET", "/v1/context", query)
    print_degraded(response)
    print_warnings([item["message"] for item in response["warnings"]])
    if format == "json":
        print_json(response)
    else:
        options.print_result(response, response["markdown"].rstrip() or "No memories yet.")


@click.command("preflow")
@session_argument
@query_argument
@open_files_option
@touched_options
@scopes_option
@budget_option
@click.option("--compacted", is_flag=True, help="The agent lost its earlier context.")
@click.option(
    "--before",
    type=click.Choice(["edit", "command"]),
    help="The query is the path of a file to be edited, or a command to be run.",
)
@click.option(
    "--include-seen",
    "include_seen",
    is_flag=True,
    help="Include memories that the session was given before.",
)
@common_options
def preflow(options: CommonOptions, session: str, query: tuple[str, ...], **fields: Any) -> None:
    """Show the memories for the next turn of a session, without those it has seen.

    Example: reverie preflow 7c2f01aa "why does checkout fail?"
    """
    client = options.gateway()
    fields |= {"session": client.resolve_session_id(session), "query": " ".join(query)}
    response = client.request("POST", "/v1/preflow", body=drop_unset(fields))
    print_degraded(response)
    options.print_result(response, response["markdown"].rstrip() or "No new memories.")


@click.command("memories")
@kinds_option
@project_option
@scope_option
@click.option(
    "--status", multiple=True, help="A status, such as archived or superseded; may be repeated."
)
@click.option("--tag", "-t", help="Only memories with this tag.")
@limit_option(50)
@common_options
def list_memories(
    options: CommonOptions,
    kinds: tuple[str, ...],
    project: str | None,
    scope: str | None,
    limit: int,
    **filters: Any,
) -> None:
    """List memories, newest first.

    Example: reverie memories --kind decision --project shop
    """
    if project and scope:
        raise InvalidInput("scope", "give a project or a scope, not both")
    client = options.gateway(project)
    query = {**filters, "kind": kinds, "scope": scope or client.project_scope}
    options.print_table(client.list_items("/v1/memories", query, limit), _LIST_COLUMNS)


_LIST_COLUMNS: Columns = {
    "id": short_id_cell("id"),
    "kind": "kind",
    "scope": "scope",
    "confidence": "confidence",
    "age": age_cell("created_at"),
    # What is no longer true must not pass for what is.
    "state": lambda memory: "" if memory["status"] == "active" else memory["status"],
    "memory": text_cell("content", 200),
}
