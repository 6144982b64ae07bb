"""`reverie git`: announces pushes and new commits of a clone to the gateway."""

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

from reverie.cli.agents.git_anchor import anchor, resolve_project
from reverie.cli.app.common import (
    NOT_RUNNING,
    Home,
    Json,
    Sets,
    err,
    out,
    print_json,
    resolve_settings,
)
from reverie.domain.core.errors import InvalidInput, ReverieError, Unavailable

if TYPE_CHECKING:
    from reverie.agent.git.announcement_log import AnnouncementOutcome, SendChange
    from reverie.agent.git.change_builder import CommitRange
    from reverie.agent.git.repository import GitRepository
    from reverie.contracts.git import GitChange
    from reverie.runtime.settings.settings import Settings

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
def announce_changes(
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
    from reverie.agent.git.announcements import announce_new_commits, announce_push
    from reverie.agent.git.change_builder import build_git_change
    from reverie.agent.git.repository import open_repository

    clone = open_repository(repo)
    name, ends = resolve_project(clone, project), _resolve_ends(clone, range, branch, merged or ())
    if dry_run:
        if ends is None:
            raise InvalidInput("range", "say which: --range A..B")
        _print_plan(build_git_change(clone, name, ends), json)
        return

    async def work(send: SendChange) -> list[AnnouncementOutcome]:
        if ends is None:
            return await announce_new_commits(clone, name, send)
        return [await announce_push(clone, name, ends, send)]

    outcomes = asyncio.run(_with_sender(resolve_settings(home, sets), work))
    print_json([_outcome_document(outcome) for outcome in outcomes]) if json else _print_outcomes(
        outcomes
    )
    if any(outcome.state == "kept" for outcome in outcomes):
        raise typer.Exit(NOT_RUNNING)


app.command("anchor")(anchor)


@app.command("watch")
def watch_commits(
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
    from reverie.agent.git.announcements import announce_new_commits, watch_clone
    from reverie.agent.git.repository import open_repository

    clone = open_repository(repo)
    name = resolve_project(clone, project)
    start = since.astimezone() if since else None

    async def work(send: SendChange) -> None:
        if not json and not once:
            err().print(f"following {clone.root} for project {name}", markup=False)
        async for _ in watch_clone(clone, include_edits=uncommitted):
            try:
                outcomes = await announce_new_commits(
                    clone, name, send, since=start, include_edits=uncommitted
                )
            except ReverieError as error:
                if once:
                    raise
                err().print(f"reverie: {error}", markup=False)
                continue
            print_json(
                [_outcome_document(outcome) for outcome in outcomes]
            ) if json and outcomes else _print_outcomes(outcomes)
            if once:
                return

    with suppress(KeyboardInterrupt):
        asyncio.run(_with_sender(resolve_settings(home, sets), work))


def _resolve_ends(
    clone: GitRepository, range: str | None, branch: str | None, merged: Sequence[str]
) -> CommitRange | None:
    """What lies between; None where nothing says it."""
    from reverie.agent.git.commit_ranges import detect_push, resolve_range

    push = detect_push(os.environ)
    push = replace(push, range=range or push.range, branch=branch or push.branch)
    if merged and not push.range:
        raise InvalidInput("merged", "say by which commits: --range A..B")
    return (
        replace(resolve_range(clone, push), merged_branches=tuple(merged)) if push.range else None
    )


async def _with_sender(settings: Settings, work: Callable[[SendChange], Awaitable[T]]) -> T:
    async with _open_sender(settings) as send:
        return await work(send)


@asynccontextmanager
async def _open_sender(settings: Settings) -> AsyncIterator[SendChange]:
    """How changes reach the gateway of these settings."""
    from reverie.cli.memory.export_import import endpoint_from_settings
    from reverie.client import ApiError, AsyncReverie

    url, key = endpoint_from_settings(settings)
    async with AsyncReverie(
        url, key, timeout=settings.request_timeout, agent="reverie-git", ca=settings.trusted_ca_file
    ) as client:

        async def send(document: dict[str, Any]) -> bool:
            try:
                response = await client.call("POST", "/v1/git/changes", body=document)
            except ApiError as error:
                if error.status in {429, 502, 503, 504}:
                    raise Unavailable(f"the gateway at {url}", str(error)) from error
                raise
            return bool(response.body["duplicate"])

        yield send


def _print_plan(change: GitChange, json: bool) -> None:
    if json:
        print_json(change.model_dump(mode="json", exclude_defaults=True))
        return
    console = out()
    console.print(_headline(change), markup=False)
    for commit in change.commits:
        console.print(f"  {commit.sha[:9]} {commit.subject}", markup=False)
    for file in change.files:
        renamed_from = f" from {file.old_path}" if file.old_path else ""
        lines = f", {len(file.hunks)} hunks" if file.hunks else ""
        console.print(f"  {file.status:9} {file.path}{renamed_from}{lines}", markup=False)


def _headline(change: GitChange) -> str:
    before = (change.before or "nothing")[:9]
    after = (change.after or "nothing")[:9]
    forced = ", forced" if change.forced else ""
    counts = f"{len(change.commits)} commits, {len(change.files)} files"
    return f"{change.project} {change.branch} {before}..{after}{forced}: {counts}"


def _print_outcomes(outcomes: Sequence[AnnouncementOutcome]) -> None:
    for outcome in outcomes:
        out().print(f"{outcome.state:9} {_headline(outcome.change)}", markup=False)
        for refusal in outcome.refused:
            err().print(f"reverie: {refusal.after} was refused: {refusal.why}", markup=False)
        if outcome.reason:
            err().print(f"reverie: kept until a gateway takes it: {outcome.reason}", markup=False)


def _outcome_document(outcome: AnnouncementOutcome) -> dict[str, Any]:
    change = outcome.change
    return {
        "state": outcome.state,
        "project": change.project,
        "branch": change.branch,
        "before": change.before,
        "after": change.after,
        "forced": change.forced,
        "commits": len(change.commits),
        "files": len(change.files),
        "why": outcome.reason or None,
        "refused": [vars(refusal) for refusal in outcome.refused],
    }
