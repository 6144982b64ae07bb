"""Commands on one memory (show, edit, forget, pin, history, ...) and `reverie gc`."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from reverie.cli.app.common import Home, Id, Json, Limit, Reason, Sets
from reverie.cli.app.gateway_client import create_client, quote_segment
from reverie.cli.app.output import (
    JsonObject,
    age_cell,
    build_table,
    format_age,
    one_line,
    print_result,
    short_id,
    text_cell,
)
from reverie.domain.core.errors import InvalidInput

VersionNumber = Annotated[int, typer.Argument(min=1, help="As `reverie history` numbers them.")]
Unpin = Annotated[bool, typer.Option("--off", help="Unpin it.")]
NewContent = Annotated[str | None, typer.Option("--content", help="With edit: what is right.")]


class FeedbackVerdict(StrEnum):
    """What a person says of a memory."""

    APPROVE = "approve"
    EDIT = "edit"
    DISCARD = "discard"


def show(id: Id, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """One memory in full, with its neighbours.

    Example: [bold]reverie show 3fa9c1d2[/]
    """
    response = create_client(home, sets).request("GET", f"/v1/memories/{quote_segment(id)}")
    print_result(response, json, "\n".join(_format_memory(response)))


def _format_memory(memory: JsonObject) -> Iterator[str]:
    yield memory["content"]
    yield ""
    yield f"id         {memory['id']} (short {memory['short_id']})"
    key = f", key {memory['key']}" if memory["key"] else ""
    yield f"what       {memory['kind']} in {memory['scope']}{key}"
    pinned = ", pinned" if memory["pinned"] else ""
    yield f"state      {memory['status']}, {memory['tier']}{pinned}, version {memory['version']}"
    yield f"sure       {memory['confidence']:.2f} (written as {memory['base_confidence']:.2f})"
    if memory["stale_grade"]:
        yield f"doubt      {memory['stale_grade']} ({memory['staleness']:.2f}): see `reverie stale`"
    if memory["tags"]:
        yield f"tags       {', '.join(memory['tags'])}"
    yield f"learned    {format_age(memory['created_at'])}, from {memory['provenance']['source']}"
    if memory.get("task"):
        yield f"task       {memory['task']['state']}{_format_claimant(memory['task'])}"
    for neighbour in memory["neighbours"]:
        arrow = "->" if neighbour["direction"] == "out" else "<-"
        yield (
            f"  {arrow} {neighbour['type']:12} {short_id(neighbour['id'])}  "
            f"{one_line(neighbour['label'], 80)}"
        )


def _format_claimant(task: JsonObject) -> str:
    return f", {task['claimed_by']} has it" if task["claimed_by"] else ""


def forget(id: Id, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Forget a memory: it is never found again.

    Example: [bold]reverie forget 3fa9c1d2[/]
    """
    response = create_client(home, sets).request("DELETE", f"/v1/memories/{quote_segment(id)}")
    print_result(response, json, f"{short_id(response['id'])} is forgotten")


def pin(
    id: Id, off: Unpin = False, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Always show a memory at session start; it never decays.

    Example: [bold]reverie pin 3fa9c1d2[/]
    """
    method = "DELETE" if off else "PUT"
    response = create_client(home, sets).request(method, f"/v1/memories/{quote_segment(id)}/pin")
    print_result(
        response, json, f"{short_id(response['id'])} is {'no longer ' if off else ''}pinned"
    )


def restore(id: Id, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Take a memory back out of the archive.

    Example: [bold]reverie restore 3fa9c1d2[/]
    """
    response = create_client(home, sets).request(
        "POST", f"/v1/memories/{quote_segment(id)}/restore"
    )
    print_result(response, json, f"{short_id(response['id'])} is {response['status']} again")


def confirm(id: Id, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Say that a doubtful memory holds as the code stands.

    Example: [bold]reverie confirm 3fa9c1d2[/]
    """
    response = create_client(home, sets).request(
        "POST", f"/v1/memories/{quote_segment(id)}/confirm"
    )
    print_result(
        response, json, f"{short_id(response['id'])} holds; {response['cleared']} doubts are gone"
    )


def history(
    id: Id, limit: Limit = 50, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Every version of a memory, newest first: what it was, by whom, why.

    Example: [bold]reverie history 3fa9c1d2[/]
    """
    versions = create_client(home, sets).list_items(
        f"/v1/memories/{quote_segment(id)}/history", {}, limit
    )
    columns: dict[str, Any] = {
        "version": "version",
        "when": age_cell("known_from"),
        "status": "status",
        "who": "who",
        "why": text_cell("why", 40),
        "content": text_cell("content", 200),
    }
    print_result(versions, json, build_table(versions, columns))


def rollback(
    id: Id,
    version: VersionNumber,
    reason: Reason = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Make a memory what an earlier version was, as a new version.

    Example: [bold]reverie rollback 3fa9c1d2 1 --reason "the edit was wrong"[/]
    """
    body = {"version": version} | ({"reason": reason} if reason else {})
    response = create_client(home, sets).request(
        "POST", f"/v1/memories/{quote_segment(id)}/rollback", body=body
    )
    outcome = (
        f"version {response['version']} is what {version} was"
        if response["changed"]
        else "it is so"
    )
    print_result(response, json, f"{short_id(response['id'])}: {outcome}")


def provenance(id: Id, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Where a memory came from: session, turns, commit, what it replaced.

    Example: [bold]reverie provenance 3fa9c1d2[/]
    """
    response = create_client(home, sets).request(
        "GET", f"/v1/memories/{quote_segment(id)}/provenance"
    )
    print_result(response, json, "\n".join(_format_provenance(response)))


def _format_provenance(document: JsonObject) -> Iterator[str]:
    yield (
        f"source     {document['source']}{' by ' + document['agent'] if document['agent'] else ''}"
    )
    if session := document["session"]:
        location = ", ".join(filter(None, (session["project"], session["branch"])))
        yield f"session    {session['id']} {location}, started {format_age(session['started_at'])}"
    git = document["git"] or {}
    if git:
        details = [git.get("branch"), (git.get("commit") or "")[:12], *git.get("files", ())]
        yield f"git        {' '.join(filter(None, details))}"
    if merge := document["promoted"]:
        yield f"merged     {merge['branch']} in {merge['commit'][:12]}"
    for turn in document["turns"]:
        yield f"turn {turn['ord']:<6}{turn['role']}: {one_line(turn['content'], 200)}"
    for replaced in document["replaced"]:
        yield f"replaced   {short_id(replaced['id'])} {one_line(replaced['content'], 160)}"


def feedback(
    id: Id,
    verdict: Annotated[FeedbackVerdict, typer.Argument(help="Approve it, edit or discard it.")],
    content: NewContent = None,
    reason: Reason = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Judge a memory: approve makes it certain, edit rewrites, discard forgets it.

    Example: [bold]reverie feedback 3fa9c1d2 approve[/]
    """
    if (verdict is FeedbackVerdict.EDIT) != (content is not None):
        raise InvalidInput("--content", "goes with the verdict edit, and only with it")
    body = {"verdict": verdict.value, "content": content, "reason": reason}
    fields = {name: value for name, value in body.items() if value is not None}
    response = create_client(home, sets).request(
        "POST", f"/v1/memories/{quote_segment(id)}/feedback", body=fields
    )
    print_result(
        response, json, f"{short_id(response['id'])}: version {response['version']} stands"
    )


Content = Annotated[str | None, typer.Option("--content", help="What it says now.")]
Summary = Annotated[str | None, typer.Option("--summary", help="In short; an empty one: none.")]
Kind = Annotated[str | None, typer.Option("--kind", "-k", help="As decision, convention, bug.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="All its tags from now on.")]
NoTags = Annotated[bool, typer.Option("--no-tags", help="No tags from now on.")]
Confidence = Annotated[
    float | None, typer.Option("--confidence", min=0, max=1, help="How sure it is, 0 to 1.")
]
ExpectedVersion = Annotated[
    int | None, typer.Option("--version", min=1, help="Only where this version stands.")
]


def edit(
    id: Id,
    content: Content = None,
    summary: Summary = None,
    kind: Kind = None,
    tag: Tags = None,
    no_tags: NoTags = False,
    confidence: Confidence = None,
    reason: Reason = None,
    version: ExpectedVersion = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Change what is written of a memory; what it was stays in its history.

    Example: [bold]reverie edit 3fa9c1d2 --kind decision --tag shipping[/]
    """
    changes: dict[str, Any] = {
        "content": content,
        "summary": summary,
        "kind": kind,
        "tags": [] if no_tags else tag,
        "confidence": confidence,
    }
    body = {name: value for name, value in changes.items() if value is not None}
    if not body:
        raise InvalidInput("edit", "say what: --content, --summary, --kind, --tag or --confidence")
    body |= {"reason": reason} if reason else {}
    response = create_client(home, sets).request(
        "PATCH", f"/v1/memories/{quote_segment(id)}", body=body, version=version
    )
    outcome = f"version {response['version']} stands" if response["changed"] else "it is so already"
    print_result(response, json, f"{short_id(response['id'])}: {outcome}")


Apply = Annotated[bool, typer.Option("--yes", "-y", help="Do it; without, say what would be done.")]


def gc(yes: Apply = False, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Archive what decayed, and drop what nothing touches.

    A dry run by default. What is archived is found with --archived, and
    comes back by `reverie restore`.

    Example: [bold]reverie gc --yes[/]
    """
    query = {"only": ["archive", "collect"], "dry_run": not yes}
    response = create_client(home, sets).request("POST", "/v1/dream/tend", query)
    prefix = "" if yes else "would be: "
    hint = "" if yes else " (--yes does it)"
    summary = f"{response['archived']} archived, {response['collected']} files and entities dropped"
    print_result(response, json, f"{prefix}{summary}, of {response['looked']} looked at{hint}")
