"""`reverie git`: announces pushes and new commits of a clone to the gateway."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.agents.git_anchor import anchor, clone_options, resolve_project
from reverie.cli.agents.git_backfill import backfill
from reverie.cli.agents.git_sender import send_with_client
from reverie.cli.app.errors import EXIT_CODES_HELP, NOT_RUNNING
from reverie.cli.app.options import CommonOptions, common_options, dry_run_option
from reverie.cli.app.output import err, plural, print_warnings
from reverie.domain.core.errors import InvalidInput, ReverieError

if TYPE_CHECKING:
    from reverie.agent.git.announcement_log import AnnouncementOutcome, SendChange
    from reverie.agent.git.change_builder import CommitRange
    from reverie.agent.git.repository import GitRepository
    from reverie.contracts.memories.git import GitChange

app = click.Group(
    "git", help="Announce commits, so that outdated memories are found.", epilog=EXIT_CODES_HELP
)


@app.command("announce")
@click.option(
    "--range",
    help="The commits A..B; zeros for A mean a new branch, for B a deleted one. "
    "Default: the range of GitHub Actions or GitLab CI, else all commits not yet announced.",
)
@click.option("--branch", help="The branch; default: the CI's, else the one checked out.")
@click.option(
    "--merged",
    multiple=True,
    help="A branch that these commits merged, if git cannot tell: its memories are promoted.",
)
@clone_options
@dry_run_option
@common_options
def announce_changes(
    options: CommonOptions,
    range: str | None,
    branch: str | None,
    merged: tuple[str, ...],
    project: str | None,
    repo: Path,
    dry_run: bool,
) -> None:
    """Announce the changes of a push: files, renames, hunks and definitions.

    No source code is sent. If no gateway answers, the change is queued in the
    clone (.git/reverie/spool) and sent with the next one; the exit code is 3.
    In a CI, set REVERIE_GATEWAY_URL and REVERIE_API_KEY.

    Example: reverie git announce --range origin/main..HEAD --dry-run
    """
    import asyncio

    from reverie.agent.git.announcements import announce_new_commits, announce_push
    from reverie.agent.git.change_builder import build_git_change
    from reverie.agent.git.repository import open_repository

    clone = open_repository(repo)
    name, ends = resolve_project(clone, project), _resolve_ends(clone, range, branch, merged)
    if dry_run:
        if ends is None:
            raise InvalidInput("range", "give --range A..B")
        change = build_git_change(clone, name, ends)
        plan = change.model_dump(mode="json", exclude_defaults=True)
        options.print_result(plan, *_format_plan(change))
        return

    async def work(send: SendChange) -> list[AnnouncementOutcome]:
        if ends is None:
            return await announce_new_commits(clone, name, send)
        return [await announce_push(clone, name, ends, send)]

    outcomes = asyncio.run(send_with_client(options.settings(), work))
    _print_outcomes(options, outcomes)
    if not outcomes and not options.json:
        is_detached = clone.current_branch is None and clone.head_commit is not None
        err().print(_DETACHED if is_detached else _NOTHING_NEW, markup=False)
    if any(outcome.state == "queued" for outcome in outcomes):
        raise click.exceptions.Exit(NOT_RUNNING)


_NOTHING_NEW = "Nothing new to announce; later commits will be announced."
_DETACHED = (
    "No branch is checked out, so nothing is announced: check one out, or give --range A..B and "
    "--branch."
)
app.add_command(anchor)
app.add_command(backfill)


@app.command("watch")
@clone_options
@click.option("--uncommitted", is_flag=True, help="Also announce edits that are not committed.")
@click.option(
    "--since", type=click.DateTime(), help="The start, for a clone that was never watched."
)
@click.option("--once", is_flag=True, help="Check once, and stop.")
@common_options
def watch_commits(
    options: CommonOptions,
    project: str | None,
    repo: Path,
    uncommitted: bool,
    since: datetime | None,
    once: bool,
) -> None:
    """Announce each new commit of a clone, until Ctrl-C.

    It starts after the last commit that was announced from this clone, or at
    the current commit.

    Example: reverie git watch --uncommitted --project shop
    """
    import asyncio

    from reverie.agent.git.announcements import announce_new_commits
    from reverie.agent.git.clone_watch import watch_clone
    from reverie.agent.git.repository import open_repository

    clone = open_repository(repo)
    name = resolve_project(clone, project)
    start = since.astimezone() if since else None

    async def work(send: SendChange) -> None:
        if not options.json and not once:
            err().print(f"watching {clone.root} for project {name}", markup=False)
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
            if outcomes:
                _print_outcomes(options, outcomes)
            if once:
                return

    with suppress(KeyboardInterrupt):
        asyncio.run(send_with_client(options.settings(), work))


def _resolve_ends(
    clone: GitRepository, range: str | None, branch: str | None, merged: Sequence[str]
) -> CommitRange | None:
    """Resolves the commits of the range; None if no option or environment gives a range."""
    from reverie.agent.git.commit_ranges import detect_push, resolve_range

    push = detect_push(os.environ)
    push = replace(push, range=range or push.range, branch=branch or push.branch)
    if push.range:
        return replace(resolve_range(clone, push), merged_branches=tuple(merged))
    if merged:
        raise InvalidInput("merged", "give the commits too: --range A..B")
    return None


def _format_plan(change: GitChange) -> Iterator[str]:
    yield _headline(change)
    for commit in change.commits:
        yield f"  {commit.sha[:9]} {commit.subject}"
    for file in change.files:
        renamed_from = f" from {file.old_path}" if file.old_path else ""
        lines = f", {plural(len(file.hunks), 'hunk')}" if file.hunks else ""
        yield f"  {file.status:9} {file.path}{renamed_from}{lines}"


def _headline(change: GitChange) -> str:
    before = (change.before or "nothing")[:9]
    after = (change.after or "nothing")[:9]
    forced = ", forced" if change.forced else ""
    counts = f"{plural(len(change.commits), 'commit')}, {plural(len(change.files), 'file')}"
    return f"{change.project} {change.branch} {before}..{after}{forced}: {counts}"


def _print_outcomes(options: CommonOptions, outcomes: Sequence[AnnouncementOutcome]) -> None:
    documents = [_outcome_document(outcome) for outcome in outcomes]
    lines = (f"{outcome.state:9} {_headline(outcome.change)}" for outcome in outcomes)
    options.print_result(documents, *lines)
    if options.json:
        return
    print_warnings([hint for outcome in outcomes for hint in outcome.hints])
    for outcome in outcomes:
        for refusal in outcome.refused:
            err().print(f"reverie: {refusal.after} was refused: {refusal.reason}", markup=False)
        if outcome.reason:
            reason = f"queued until a gateway accepts it: {outcome.reason}"
            err().print(f"reverie: {reason}", markup=False)


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
        "reason": outcome.reason or None,
        "hints": list(outcome.hints),
        "rejected": [vars(refusal) for refusal in outcome.refused],
    }
