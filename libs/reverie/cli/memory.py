"""Commands on one memory: forget, pin, restore, history, rollback, provenance, feedback."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from reverie.cli.asking import desk, part
from reverie.cli.common import Home, Json, Sets
from reverie.cli.options import Id, Limit, Reason
from reverie.cli.shown import Document, ago, clipped, line_of, short, since, table, tell
from reverie.domain.errors import Invalid

Version = Annotated[int, typer.Argument(min=1, help="As `reverie history` numbers them.")]
Off = Annotated[bool, typer.Option("--off", help="Unpin it.")]
NewContent = Annotated[str | None, typer.Option("--content", help="With edit: what is right.")]


class Verdict(StrEnum):
    """What a person says of a memory."""

    APPROVE = "approve"
    EDIT = "edit"
    DISCARD = "discard"


def show(id: Id, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """One memory in full, with its neighbours.

    Example: [bold]reverie show 3fa9c1d2[/]
    """
    found = desk(home, sets).ask("GET", f"/v1/memories/{part(id)}")
    tell(found, json, "\n".join(_whole(found)))


def _whole(one: Document) -> Iterator[str]:
    yield one["content"]
    yield ""
    yield f"id         {one['id']} (short {one['short_id']})"
    key = f", key {one['key']}" if one["key"] else ""
    yield f"what       {one['kind']} in {one['scope']}{key}"
    pinned = ", pinned" if one["pinned"] else ""
    yield f"state      {one['status']}, {one['tier']}{pinned}, version {one['version']}"
    yield f"sure       {one['confidence']:.2f} (written as {one['base_confidence']:.2f})"
    if one["stale_grade"]:
        yield f"doubt      {one['stale_grade']} ({one['staleness']:.2f}): see `reverie stale`"
    if one["tags"]:
        yield f"tags       {', '.join(one['tags'])}"
    yield f"learned    {since(one['created_at'])}, from {one['provenance']['source']}"
    if one.get("task"):
        yield f"task       {one['task']['state']}{_by(one['task'])}"
    for near in one["neighbours"]:
        arrow = "->" if near["direction"] == "out" else "<-"
        yield f"  {arrow} {near['type']:12} {short(near['id'])}  {line_of(near['label'], 80)}"


def _by(task: Document) -> str:
    return f", {task['claimed_by']} has it" if task["claimed_by"] else ""


def forget(id: Id, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Forget a memory: it is never found again.

    Example: [bold]reverie forget 3fa9c1d2[/]
    """
    done = desk(home, sets).ask("DELETE", f"/v1/memories/{part(id)}")
    tell(done, json, f"{short(done['id'])} is forgotten")


def pin(id: Id, off: Off = False, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Always show a memory at session start; it never decays.

    Example: [bold]reverie pin 3fa9c1d2[/]
    """
    method = "DELETE" if off else "PUT"
    done = desk(home, sets).ask(method, f"/v1/memories/{part(id)}/pin")
    tell(done, json, f"{short(done['id'])} is {'no longer ' if off else ''}pinned")


def restore(id: Id, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Take a memory back out of the archive.

    Example: [bold]reverie restore 3fa9c1d2[/]
    """
    done = desk(home, sets).ask("POST", f"/v1/memories/{part(id)}/restore")
    tell(done, json, f"{short(done['id'])} is {done['status']} again")


def confirm(id: Id, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Say that a doubtful memory holds as the code stands.

    Example: [bold]reverie confirm 3fa9c1d2[/]
    """
    done = desk(home, sets).ask("POST", f"/v1/memories/{part(id)}/confirm")
    tell(done, json, f"{short(done['id'])} holds; {done['cleared']} doubts are gone")


def history(
    id: Id, limit: Limit = 50, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Every version of a memory, newest first: what it was, by whom, why.

    Example: [bold]reverie history 3fa9c1d2[/]
    """
    found = desk(home, sets).pages(f"/v1/memories/{part(id)}/history", {}, limit)
    columns: dict[str, Any] = {
        "version": "version",
        "when": ago("known_from"),
        "status": "status",
        "who": "who",
        "why": clipped("why", 40),
        "content": clipped("content", 200),
    }
    tell(found, json, table(found, columns))


def rollback(
    id: Id,
    version: Version,
    reason: Reason = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Make a memory what an earlier version was, as a new version.

    Example: [bold]reverie rollback 3fa9c1d2 1 --reason "the edit was wrong"[/]
    """
    body = {"version": version} | ({"reason": reason} if reason else {})
    done = desk(home, sets).ask("POST", f"/v1/memories/{part(id)}/rollback", body=body)
    so = f"version {done['version']} is what {version} was" if done["changed"] else "it is so"
    tell(done, json, f"{short(done['id'])}: {so}")


def provenance(id: Id, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Where a memory came from: session, turns, commit, what it replaced.

    Example: [bold]reverie provenance 3fa9c1d2[/]
    """
    found = desk(home, sets).ask("GET", f"/v1/memories/{part(id)}/provenance")
    tell(found, json, "\n".join(_origin(found)))


def _origin(found: Document) -> Iterator[str]:
    yield f"source     {found['source']}{' by ' + found['agent'] if found['agent'] else ''}"
    if session := found["session"]:
        where = ", ".join(filter(None, (session["project"], session["branch"])))
        yield f"session    {session['id']} {where}, started {since(session['started_at'])}"
    git = found["git"] or {}
    if git:
        told = [git.get("branch"), (git.get("commit") or "")[:12], *git.get("files", ())]
        yield f"git        {' '.join(filter(None, told))}"
    if merge := found["promoted"]:
        yield f"merged     {merge['branch']} in {merge['commit'][:12]}"
    for turn in found["turns"]:
        yield f"turn {turn['ord']:<6}{turn['role']}: {line_of(turn['content'], 200)}"
    for old in found["replaced"]:
        yield f"replaced   {short(old['id'])} {line_of(old['content'], 160)}"


def feedback(
    id: Id,
    verdict: Annotated[Verdict, typer.Argument(help="Approve it, edit or discard it.")],
    content: NewContent = None,
    reason: Reason = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Judge a memory: approve makes it certain, edit rewrites, discard forgets it.

    Example: [bold]reverie feedback 3fa9c1d2 approve[/]
    """
    if (verdict is Verdict.EDIT) != (content is not None):
        raise Invalid("--content", "goes with the verdict edit, and only with it")
    body = {"verdict": verdict.value, "content": content, "reason": reason}
    given = {name: value for name, value in body.items() if value is not None}
    done = desk(home, sets).ask("POST", f"/v1/memories/{part(id)}/feedback", body=given)
    tell(done, json, f"{short(done['id'])}: version {done['version']} stands")
