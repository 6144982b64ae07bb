"""Commands on one memory: show, edit, pin, history, archive, forget, erase and others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    drop_unset,
    limit_option,
    memory_id_argument,
    reason_option,
    tier_option,
    yes_option,
)
from reverie.cli.app.output import (
    Columns,
    JsonObject,
    age_cell,
    confirm,
    format_age,
    one_line,
    plural,
    short_id,
    text_cell,
)
from reverie.domain.core.errors import InvalidInput


@click.command("show")
@memory_id_argument
@common_options
def show(options: CommonOptions, id: str) -> None:
    """Show a memory with its neighbours.

    Example: reverie show 3fa9c1d2
    """
    response = options.gateway().request("GET", f"/v1/memories/{quote_segment(id)}")
    options.print_result(response, "\n".join(_format_memory(response)))


def _format_memory(memory: JsonObject) -> Iterator[str]:
    yield memory["content"]
    yield ""
    yield f"id         {memory['id']} (short {memory['short_id']})"
    key = f", key {memory['key']}" if memory["key"] else ""
    yield f"kind       {memory['kind']} in {memory['scope']}{key}"
    pinned = ", pinned" if memory["pinned"] else ""
    yield f"state      {memory['status']}, {memory['tier']}{pinned}, version {memory['version']}"
    yield f"confidence {memory['confidence']:.2f} (initially {memory['base_confidence']:.2f})"
    if memory["stale_grade"]:
        yield f"staleness  {memory['stale_grade']} ({memory['staleness']:.2f}): see `reverie stale`"
    if memory["tags"]:
        yield f"tags       {', '.join(memory['tags'])}"
    writer = memory["metadata"].get("generated_by")
    by = f", written by {writer}" if writer else ""
    source = memory["provenance"]["source"]
    yield f"learned    {format_age(memory['created_at'])}, from {source}{by}"
    asked = memory["provenance"]["asked"]
    if asked and asked not in memory["content"]:
        yield f"asked      {one_line(asked, 200)}"
    if task := memory.get("task"):
        claimant = f", claimed by {task['claimed_by']}" if task["claimed_by"] else ""
        yield f"task       {task['state']}{claimant}"
    for neighbour in memory["neighbours"]:
        arrow = "->" if neighbour["direction"] == "out" else "<-"
        yield (
            f"  {arrow} {neighbour['type']:12} {short_id(neighbour['id'])}  "
            f"{one_line(neighbour['label'], 80)}"
        )


@click.command("pin")
@memory_id_argument
@common_options
def pin(options: CommonOptions, id: str) -> None:
    """Pin a memory: every session starts with it, and it never decays.

    Example: reverie pin 3fa9c1d2
    """
    response = options.gateway().request("PUT", f"/v1/memories/{quote_segment(id)}/pin")
    options.print_result(response, f"{short_id(response['id'])} is pinned")


@click.command("unpin")
@memory_id_argument
@common_options
def unpin(options: CommonOptions, id: str) -> None:
    """Unpin a memory.

    Example: reverie unpin 3fa9c1d2
    """
    response = options.gateway().request("DELETE", f"/v1/memories/{quote_segment(id)}/pin")
    options.print_result(response, f"{short_id(response['id'])} is not pinned")


@click.command("confirm")
@memory_id_argument
@common_options
def confirm_memory(options: CommonOptions, id: str) -> None:
    """Confirm that a stale memory is still true.

    Example: reverie confirm 3fa9c1d2
    """
    response = options.gateway().request("POST", f"/v1/memories/{quote_segment(id)}/confirm")
    marks = plural(response["cleared"], "stale mark")
    message = f"{short_id(response['id'])} confirmed; {marks} removed"
    options.print_result(response, message)


@click.command("history")
@memory_id_argument
@limit_option(50)
@common_options
def history(options: CommonOptions, id: str, limit: int) -> None:
    """List the versions of a memory, newest first, with actor and reason.

    Example: reverie history 3fa9c1d2
    """
    versions = options.gateway().list_items(f"/v1/memories/{quote_segment(id)}/history", {}, limit)
    options.print_table(versions, _VERSION_COLUMNS)


_VERSION_COLUMNS: Columns = {
    "version": "version",
    "age": age_cell("known_from"),
    "status": "status",
    "tier": "tier",
    "actor": "actor",
    "reason": text_cell("reason", 40),
    "content": text_cell("content", 200),
}


@click.command("rollback")
@memory_id_argument
@click.argument(
    "version", type=click.IntRange(min=1), help="A version number, as `reverie history` lists it."
)
@reason_option
@common_options
def rollback(options: CommonOptions, id: str, version: int, reason: str | None) -> None:
    """Restore an earlier version of a memory, as a new version.

    Example: reverie rollback 3fa9c1d2 1 --reason "the edit was wrong"
    """
    body = drop_unset({"version": version, "reason": reason})
    path = f"/v1/memories/{quote_segment(id)}/rollback"
    response = options.gateway().request("POST", path, body=body)
    restored = f"version {response['version']} restores version {version}"
    outcome = restored if response["changed"] else "no change"
    options.print_result(response, f"{short_id(response['id'])}: {outcome}")


@click.command("provenance")
@memory_id_argument
@common_options
def provenance(options: CommonOptions, id: str) -> None:
    """Show a memory's origin: session, turns, commit, and what it replaced.

    Example: reverie provenance 3fa9c1d2
    """
    response = options.gateway().request("GET", f"/v1/memories/{quote_segment(id)}/provenance")
    options.print_result(response, "\n".join(_format_provenance(response)))


def _format_provenance(document: JsonObject) -> Iterator[str]:
    agent = f" by {document['agent']}" if document["agent"] else ""
    yield f"source     {document['source']}{agent}"
    if session := document["session"]:
        location = ", ".join(filter(None, (session["project"], session["branch"])))
        yield f"session    {session['id']} {location}, started {format_age(session['started_at'])}"
    git = document["git"] or {}
    if git:
        details = [git.get("branch"), (git.get("commit") or "")[:12], *git.get("files", ())]
        yield f"git        {' '.join(filter(None, details))}"
    if merge := document["promoted"]:
        yield f"merged     {merge['branch']} in {merge['commit'][:12]}"
    if document["asked"]:
        yield f"asked      {one_line(document['asked'], 200)}"
    for turn in document["turns"]:
        yield f"turn {turn['ordinal']:<6}{turn['role']}: {one_line(turn['content'], 200)}"
    for replaced in document["replaced"]:
        yield f"replaced   {short_id(replaced['id'])} {one_line(replaced['content'], 160)}"


@click.command("feedback")
@memory_id_argument
@click.argument("verdict", type=click.Choice(["approve", "edit", "discard"]), help="The verdict.")
@click.option("--content", help="The corrected content, with the verdict edit.")
@reason_option
@common_options
def feedback(
    options: CommonOptions, id: str, verdict: str, content: str | None, reason: str | None
) -> None:
    """Judge a memory: approve raises its confidence, edit rewrites it, discard forgets it.

    Example: reverie feedback 3fa9c1d2 approve
    """
    if (verdict == "edit") != (content is not None):
        raise InvalidInput("--content", "is required with the verdict edit, and only with it")
    body = drop_unset({"verdict": verdict, "content": content, "reason": reason})
    path = f"/v1/memories/{quote_segment(id)}/feedback"
    response = options.gateway().request("POST", path, body=body)
    options.print_result(response, f"{short_id(response['id'])}: version {response['version']}")


@click.command("edit")
@memory_id_argument
@click.option("--content", help="The new content.")
@click.option("--summary", help="The new summary; empty removes it.")
@click.option("--kind", "-k", help="The kind, such as decision, convention or bug.")
@click.option(
    "--tag", "-t", "tags", multiple=True, help="A tag; the given tags replace all others."
)
@click.option("--no-tags", is_flag=True, help="Remove all tags.")
@click.option("--confidence", type=click.FloatRange(min=0, max=1), help="The confidence, 0 to 1.")
@tier_option
@reason_option
@click.option(
    "--version", type=click.IntRange(min=1), help="Edit only if this is the current version."
)
@common_options
def edit(
    options: CommonOptions,
    id: str,
    tags: tuple[str, ...],
    no_tags: bool,
    reason: str | None,
    version: int | None,
    **fields: Any,
) -> None:
    """Edit a memory; earlier versions stay in its history.

    Example: reverie edit 3fa9c1d2 --kind decision --tag shipping
    """
    body = drop_unset({**fields, "tags": [] if no_tags else tags})
    if not body:
        names = "--content, --summary, --kind, --tag, --tier or --confidence"
        raise InvalidInput("edit", f"give {names}")
    body |= drop_unset({"reason": reason})
    response = options.gateway().request(
        "PATCH", f"/v1/memories/{quote_segment(id)}", body=body, version=version
    )
    outcome = f"version {response['version']}" if response["changed"] else "no change"
    options.print_result(response, f"{short_id(response['id'])}: {outcome}")


@click.command("archive")
@memory_id_argument
@common_options
def archive(options: CommonOptions, id: str) -> None:
    """Archive a memory: it is found only when asked for.

    Example: reverie archive 3fa9c1d2
    """
    response = options.gateway().request("POST", f"/v1/memories/{quote_segment(id)}/archive")
    options.print_result(response, f"{short_id(response['id'])} is archived")


@click.command("forget")
@click.argument("ids", nargs=-1, help="Ids of memories, or their last eight digits.")
@click.option("--scope", help="All memories of this scope.")
@click.option("--tag", help="Of these, only those with this tag.")
@yes_option
@common_options
def forget(
    options: CommonOptions, ids: tuple[str, ...], scope: str | None, tag: str | None, yes: bool
) -> None:
    """Forget memories: no answer contains them; their texts are erased unless they are restored.

    Example: reverie forget 3fa9c1d2
    """
    from reverie.contracts.memories.edits import MAX_FORGOTTEN

    if bool(ids) == bool(scope) or (ids and tag):
        raise InvalidInput("IDS", "give ids, or `--scope`, which `--tag` narrows")
    if len(ids) == 1:
        _forget_one(options, ids[0])
        return
    if scope and not yes:
        confirm(f"Forget all memories of {scope}{f' with the tag {tag}' if tag else ''}?")
    starts = range(0, len(ids), MAX_FORGOTTEN) if ids else [0]
    parts = [ids[start : start + MAX_FORGOTTEN] for start in starts]
    count, more = 0, True
    while more:
        body = drop_unset({"ids": parts[0], "scope": scope, "tag": tag})
        response = options.gateway().request("POST", "/v1/memories/forget", body=body)
        count += response["forgotten"]
        parts = parts if response["more"] else parts[1:]
        more = bool(parts)
    until = response["restorable_until"] if count else None
    remedy = f"; until {until[:10]} `reverie restore` brings each back" if until else ""
    text = f"{plural(count, 'memory')} forgotten{remedy}"
    options.print_result(response | {"forgotten": count}, text)


def _forget_one(options: CommonOptions, id: str) -> None:
    response = options.gateway().request("DELETE", f"/v1/memories/{quote_segment(id)}")
    until = response["restorable_until"]
    name = short_id(response["id"])
    remedy = f"; until {until[:10]} `reverie restore {name}` brings it back" if until else ""
    options.print_result(response, f"{name} was forgotten{remedy}")


@click.command("restore")
@memory_id_argument
@common_options
def restore(options: CommonOptions, id: str) -> None:
    """Restore a memory that was archived, or forgotten a short time ago.

    Example: reverie restore 3fa9c1d2
    """
    response = options.gateway().request("POST", f"/v1/memories/{quote_segment(id)}/restore")
    options.print_result(response, f"{short_id(response['id'])} is {response['status']} again")


@click.command("erase")
@memory_id_argument
@reason_option
@yes_option
@common_options
def erase(options: CommonOptions, id: str, reason: str | None, yes: bool) -> None:
    """Erase a memory at once and for good, and say what was removed.

    Example: reverie erase 3fa9c1d2 --yes
    """
    if not yes:
        confirm(f"Erase {id} for good? Nothing but a backup can bring it back.")
    path = f"/v1/memories/{quote_segment(id)}/erase"
    response = options.gateway().request("POST", path, body=drop_unset({"reason": reason}))
    removed = ", ".join(f"{table} {count}" for table, count in response["rows"].items())
    lines = [f"{short_id(response['id'])} is erased; rows: {removed or 'none was left'}"]
    if quoting := response["still_quoted_in"]:
        names = ", ".join(map(short_id, quoting))
        lines.append(f"still quoted in {plural(len(quoting), 'memory')}: {names}")
    lines.append(f"backups from before {response['in_backups_before'][:19]} still hold it")
    options.print_result(response, "\n".join(lines))
