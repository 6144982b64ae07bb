"""`reverie git backfill`: stores decisions in the commit messages of a clone's history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.agents.git_anchor import clone_options, resolve_project
from reverie.cli.agents.git_sender import send_with_client
from reverie.cli.app.options import CommonOptions, common_options, dry_run_option
from reverie.cli.app.output import err, plural
from reverie.domain.core.errors import InvalidInput, ReverieError

if TYPE_CHECKING:
    from reverie.agent.git.backfill import HistoryCommit, HistoryRange
    from reverie.agent.git.repository import GitRepository
    from reverie.domain.extraction.commit_records import CommitRecord

EXAMPLE_COUNT = 3
EXAMPLE_CHARS = 300


@click.command("backfill")
@click.option("--since", type=click.DateTime(), help="Only commits made since a date.")
@click.option("--branch", help="The branch; default: the default branch, else the current one.")
@click.option("--max", "limit", type=click.IntRange(min=1), help="Only the newest so many commits.")
@clone_options
@dry_run_option
@common_options
def backfill(
    options: CommonOptions,
    since: datetime | None,
    branch: str | None,
    limit: int | None,
    project: str | None,
    repo: Path,
    dry_run: bool,
) -> None:
    """Remember the decisions in the commit messages of a whole history.

    Messages with a reason, a rule or a behaviour become memories. Paths and
    messages are sent, no source code. Run it again to go on after an
    interruption, or to send new commits: nothing is stored twice.

    Example: reverie git backfill --since 2024-01-01 --dry-run
    """
    import asyncio

    from reverie.agent.git.backfill import HistoryRange, backfill_history, read_history
    from reverie.agent.git.repository import UNSHALLOW_HINT, open_repository

    clone = open_repository(repo)
    branch, head = _resolve_branch(clone, branch)
    start = since.astimezone() if since else None
    history = HistoryRange(resolve_project(clone, project), branch, head, start, limit)
    if clone.is_shallow:
        err().print(f"reverie: this clone is shallow: {UNSHALLOW_HINT}", markup=False)
    if dry_run:
        _print_plan(options, history, read_history(clone, history))
        return
    hints: dict[str, None] = {}
    with _report_progress(options.json) as report:
        try:
            sent = asyncio.run(
                send_with_client(
                    options.settings(),
                    lambda send: backfill_history(clone, history, send, report),
                    hints,
                )
            )
        except (ReverieError, KeyboardInterrupt):
            err().print(
                "reverie: run the command again to go on after the last batch", markup=False
            )
            raise
    document = {"project": history.project, "branch": branch, "head": head, "commits": sent}
    options.print_result(
        document | {"hints": list(hints)}, f"{plural(sent, 'commit')} sent to {history.project}"
    )
    for hint in () if options.json else hints:
        err().print(f"reverie: {hint}", markup=False)


def _resolve_branch(clone: GitRepository, branch: str | None) -> tuple[str, str]:
    """The branch and its commit, local or else of `origin`."""
    name = branch or clone.default_branch or clone.current_branch
    if name is None:
        raise InvalidInput("branch", "none is checked out: name one")
    refs = (f"refs/heads/{name}", f"refs/remotes/origin/{name}")
    ref = next((ref for ref in refs if clone.has_commit(ref)), name)
    return name, clone.resolve_commit(ref, "branch")


def _print_plan(
    options: CommonOptions, history: HistoryRange, commits: Sequence[HistoryCommit]
) -> None:
    """Prints how many commits would leave a memory, and examples from the whole history."""
    from reverie.domain.extraction.commit_records import extract_commit_record

    records = [
        (item.commit.sha, record)
        for item in commits
        if (record := extract_commit_record(item.commit.subject, item.commit.body))
    ]
    step = max(1, len(records) // EXAMPLE_COUNT)
    examples = records[step // 2 :: step][:EXAMPLE_COUNT]
    document = {
        "project": history.project,
        "branch": history.branch,
        "commits": len(commits),
        "memories": len(records),
        "examples": [
            {"commit": sha, "kind": record.kind, "content": record.content}
            for sha, record in examples
        ],
    }
    headline = (
        f"{history.project} {history.branch}: {len(records):,} of {plural(len(commits), 'commit')}"
        " would leave a memory"
    )
    options.print_result(document, headline, *_format_examples(examples))


def _format_examples(examples: Sequence[tuple[str, CommitRecord]]) -> Iterator[str]:
    from reverie.domain.text.markdown import shorten

    for sha, record in examples:
        yield f"\n{sha[:9]} {record.kind}"
        for line in shorten(record.content, EXAMPLE_CHARS).splitlines():
            yield f"  {line}".rstrip()


@contextmanager
def _report_progress(is_json: bool) -> Iterator[Callable[[int, int], None]]:
    """Shows the progress on standard error: a bar on a terminal, else a line for each batch."""
    console = err()
    if is_json or not console.is_terminal:

        def print_line(sent: int, total: int) -> None:
            if sent and not is_json:
                console.print(f"{sent:,} of {plural(total, 'commit')}", markup=False)

        yield print_line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda sent, total: progress.update(task, completed=sent, total=total)
