"""`reverie git`: telling a gateway what commits changed, from a clone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from reverie.cli.common import NOT_RUNNING, Home, Json, Sets, err, out, print_json, settings_from
from reverie.cli.git_anchor import anchor, project_of
from reverie.domain.errors import Invalid, ReverieError, Unavailable

if TYPE_CHECKING:
    from reverie.agent.git_change import Ends
    from reverie.agent.git_repo import Repo
    from reverie.agent.git_state import Outcome, Send
    from reverie.contracts.git import GitChange
    from reverie.runtime.settings import Settings

T = TypeVar("T")

app = typer.Typer(no_args_is_help=True, help="Tell what commits changed, so that memories know.")

RepoPath = Annotated[
    Path, typer.Option("--repo", "-C", help="A folder of the clone.", show_default="here")
]
Project = Annotated[
    str | None,
    typer.Option(
        "--project",
        envvar="REVERIE_PROJECT",
        help="Whose memories; unset: reverie.toml, git config reverie.project, or the repository.",
    ),
]
Branch = Annotated[
    str | None,
    typer.Option("--branch", help="The branch; unset: what the CI says, else what is checked out."),
]


@app.command("push-event")
def push_event(
    range: Annotated[
        str | None,
        typer.Option(
            "--range",
            help="A..B as git writes it; zeros for A: a new branch, for B: a deleted one. Unset: "
            "what GitHub Actions or GitLab CI says, else what was not announced yet.",
        ),
    ] = None,
    branch: Branch = None,
    merged: Annotated[
        list[str] | None,
        typer.Option(
            "--merged",
            help="A branch that the commits brought in, where neither they nor the clone tell: "
            "its memories then hold for the project.",
        ),
    ] = None,
    project: Project = None,
    repo: RepoPath = Path(),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent; send nothing.")
    ] = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Announce what a push changed: files, renames, hunks, definitions; no source.

    Where no gateway answers, the change waits in the clone's .git/reverie/spool and is sent before
    the next one; the exit code is 3 then. In a CI set REVERIE_GATEWAY_URL and REVERIE_API_KEY.

    Example: [bold]reverie git push-event --range origin/main..HEAD --dry-run[/]
    """
    from reverie.agent.git_change import change_of
    from reverie.agent.git_follow import announce_new, announce_push
    from reverie.agent.git_repo import open_repo

    clone = open_repo(repo)
    name, ends = project_of(clone, project), _ends(clone, range, branch, merged or ())
    if dry_run:
        if ends is None:
            raise Invalid("range", "say which: --range A..B")
        _planned(change_of(clone, name, ends), json)
        return

    async def work(send: Send) -> list[Outcome]:
        if ends is None:
            return await announce_new(clone, name, send)
        return [await announce_push(clone, name, ends, send)]

    outcomes = asyncio.run(_sending(settings_from(home, sets), work))
    print_json([_told(one) for one in outcomes]) if json else _say(outcomes)
    if any(one.state == "kept" for one in outcomes):
        raise typer.Exit(NOT_RUNNING)


app.command("anchor")(anchor)


@app.command("watch")
def watch(
    project: Project = None,
    repo: RepoPath = Path(),
    uncommitted: Annotated[
        bool, typer.Option("--uncommitted", help="Also edits that are not committed yet.")
    ] = False,
    since: Annotated[
        datetime | None,
        typer.Option("--since", help="In a clone that was never followed: begin at this time."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Follow a clone: announce each commit as it is made, once. End it with Ctrl-C.

    It begins at what was announced last from this clone, by whatever command; in a clone that was
    never followed at what is checked out now.

    Example: [bold]reverie git watch --uncommitted --project shop[/]
    """
    from reverie.agent.git_follow import announce_new, changes_in
    from reverie.agent.git_repo import open_repo

    clone = open_repo(repo)
    name = project_of(clone, project)
    begin = since.astimezone() if since else None

    async def work(send: Send) -> None:
        if not json and not once:
            err().print(f"following {clone.root} for project {name}", markup=False)
        async for _ in changes_in(clone, edits=uncommitted):
            try:
                found = await announce_new(clone, name, send, since=begin, edits=uncommitted)
            except ReverieError as error:
                if once:
                    raise
                err().print(f"reverie: {error}", markup=False)
                continue
            print_json([_told(one) for one in found]) if json and found else _say(found)
            if once:
                return

    with suppress(KeyboardInterrupt):
        asyncio.run(_sending(settings_from(home, sets), work))


def _ends(clone: Repo, range: str | None, branch: str | None, merged: Sequence[str]) -> Ends | None:
    """What lies between; None where nothing says it."""
    from reverie.agent.git_range import ends_of, pushed

    told = pushed(os.environ)
    told = replace(told, range=range or told.range, branch=branch or told.branch)
    if merged and not told.range:
        raise Invalid("merged", "say by which commits: --range A..B")
    return replace(ends_of(clone, told), merged=tuple(merged)) if told.range else None


async def _sending(settings: Settings, work: Callable[[Send], Awaitable[T]]) -> T:
    async with _gateway(settings) as send:
        return await work(send)


@asynccontextmanager
async def _gateway(settings: Settings) -> AsyncIterator[Send]:
    """How changes reach the gateway of these settings."""
    from reverie.cli.carry import gateway_of
    from reverie.client import AsyncReverie, Refused

    url, key = gateway_of(settings)
    async with AsyncReverie(
        url, key, timeout=settings.request_timeout, agent="reverie-git", ca=settings.authority
    ) as at:

        async def send(document: dict[str, Any]) -> bool:
            try:
                answer = await at.call("POST", "/v1/git/changes", body=document)
            except Refused as error:
                if error.status in {429, 502, 503, 504}:
                    raise Unavailable(f"the gateway at {url}", str(error)) from error
                raise
            return bool(answer.body["duplicate"])

        yield send


def _planned(change: GitChange, json: bool) -> None:
    if json:
        print_json(change.model_dump(mode="json", exclude_defaults=True))
        return
    console = out()
    console.print(_headline(change), markup=False)
    for commit in change.commits:
        console.print(f"  {commit.sha[:9]} {commit.subject}", markup=False)
    for file in change.files:
        moved = f" from {file.old_path}" if file.old_path else ""
        lines = f", {len(file.hunks)} hunks" if file.hunks else ""
        console.print(f"  {file.status:9} {file.path}{moved}{lines}", markup=False)


def _headline(change: GitChange) -> str:
    before = (change.before or "nothing")[:9]
    after = (change.after or "nothing")[:9]
    forced = ", forced" if change.forced else ""
    counts = f"{len(change.commits)} commits, {len(change.files)} files"
    return f"{change.project} {change.branch} {before}..{after}{forced}: {counts}"


def _say(outcomes: Sequence[Outcome]) -> None:
    for one in outcomes:
        out().print(f"{one.state:9} {_headline(one.change)}", markup=False)
        for lost in one.refused:
            err().print(f"reverie: {lost.after} was refused: {lost.why}", markup=False)
        if one.why:
            err().print(f"reverie: kept until a gateway takes it: {one.why}", markup=False)


def _told(one: Outcome) -> dict[str, Any]:
    change = one.change
    return {
        "state": one.state,
        "project": change.project,
        "branch": change.branch,
        "before": change.before,
        "after": change.after,
        "forced": change.forced,
        "commits": len(change.commits),
        "files": len(change.files),
        "why": one.why or None,
        "refused": [vars(lost) for lost in one.refused],
    }
