"""From a range of commits in a clone to the change that is announced.

The commits are told along first parents, each against the one before it, so that the lines of one
entry follow from those of the entries before it; a merge is one step, and its files name the commit
of the branch that touched them. A longer way is told as one comparison of its ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from reverie.agent.git_diff import Entry, read_diff
from reverie.agent.git_files import files_of
from reverie.agent.git_merged import Told, brought_in
from reverie.agent.git_repo import DEEPEN, Repo
from reverie.contracts.git import MAX_COMMITS, MAX_FILES, GitChange
from reverie.domain.errors import Conflict
from reverie.domain.merges import reverted_commit

SEND_SOURCE: Final = "reverie.source"
"""The setting of a clone that lets changed lines leave it: `git config reverie.source true`."""
MOST_STEPS: Final = 200
MOST_BYTES: Final = 16 * 1024 * 1024
_SUBJECT: Final = 2000
_FORMAT: Final = "%H%x00%P%x00%cI%x00%s%x00%b%x01"

Document = dict[str, Any]


@dataclass(frozen=True)
class Ends:
    """What is compared: `before` None for a new branch, whose files are compared with `base` (None:
    with nothing); `after` None for a deleted one.

    `told`: uncommitted edits that were announced since `before`; what follows is told against them.
    `edits`: `after` is such a state itself. `merged`: branches that are known to come in, whatever
    the clone tells. `repository` and `default_branch` where it is known
    better than the clone knows.
    """

    branch: str
    before: str | None
    after: str | None
    base: str | None = None
    told: str | None = None
    edits: bool = False
    merged: tuple[str, ...] = ()
    repository: str | None = None
    default_branch: str | None = None

    @property
    def start(self) -> str | None:
        """From where commits are told."""
        return self.before or self.base


@dataclass
class _Step:
    commit: Told
    entries: list[Entry]
    blamed: Mapping[str, str] = field(default_factory=dict)


def change_of(repo: Repo, project: str, ends: Ends) -> GitChange:
    """The change between two commits of a branch. Raises `Conflict` where the clone lacks them."""
    main = ends.default_branch or repo.default_branch
    head = {
        "project": project,
        "repository": ends.repository or repo.remote,
        "branch": ends.branch,
        "default_branch": main,
        "before": ends.told if ends.edits else ends.before,
        "after": ends.after,
        "uncommitted": ends.edits,
    }
    if ends.after is None:
        return GitChange.model_validate({**head, "deleted": True})
    forced = _forced(repo, ends, ends.after)
    told = [] if ends.edits else _commits(repo, ends.start, ends.after)
    steps = list(_steps(repo, ends, told, forced))
    files = [one for step in steps for one in _files(repo, step)][:MAX_FILES]
    if repo.setting(SEND_SOURCE) != "true":
        _without({"files": files}, ("text",))
    named = {file["commit"] for file in files}
    merges = [one for one in told if len(one.parents) > 1]
    return _fitting(
        {
            **head,
            "forced": forced,
            "merge": bool(merges),
            "merged": list(
                dict.fromkeys((*ends.merged, *brought_in(repo, told, ends.branch, main)))
            ),
            "commits": _with_reach(_with_named(repo, told, named), _chain_of(told, ends.after)),
            "files": files,
        }
    )


def _forced(repo: Repo, ends: Ends, after: str) -> bool:
    """Whether the branch left its way. Raises `Conflict` where a shallow clone cannot know."""
    if ends.before is None or ends.edits or repo.is_ancestor(ends.before, after):
        return False
    if repo.shallow and repo.fork(ends.before, after) is None:
        raise Conflict(f"this clone is too shallow to know what lies between: {DEEPEN}")
    return True


def _commits(repo: Repo, start: str | None, end: str) -> list[Told]:
    """The commits that `end` has and `start` has not, oldest first; the newest of too many."""
    span = f"{start}..{end}" if start else end
    printed = repo.run(
        "log", f"--max-count={MAX_COMMITS}", "--topo-order", f"--format={_FORMAT}", span, "--"
    ).decode(errors="replace")
    found = [_told(one.lstrip("\n").split("\0")) for one in printed.split("\1") if one.strip()]
    return found[::-1]


def _told(parts: list[str]) -> Told:
    sha, parents, when, subject, body = parts[:5]
    return Told(sha, tuple(parents.split()), when, subject[:_SUBJECT], reverted_commit(body))


def _steps(repo: Repo, ends: Ends, told: Sequence[Told], forced: bool) -> Iterator[_Step]:
    """The comparisons that lead from the start to the end."""
    assert ends.after is not None
    chain = _chain_of(told, ends.after)
    start = ends.told or ends.start or repo.empty_tree
    whole = forced or ends.told or ends.edits or len(chain) > MOST_STEPS
    if whole or not _joins(chain, ends.start):
        last = told[-1] if told and told[-1].sha == ends.after else _one(repo, ends.after)
        blamed = _blamed(repo, ends.start, ends.after) if told else {}
        yield _Step(last, read_diff(repo.diff(start, ends.after)), blamed)
        return
    for commit in chain:
        parent = commit.parents[0] if commit.parents else repo.empty_tree
        blamed = _blamed(repo, parent, commit.sha) if len(commit.parents) > 1 else {}
        yield _Step(commit, read_diff(repo.diff(parent, commit.sha)), blamed)


def _chain_of(told: Sequence[Told], end: str) -> list[Told]:
    return _chain({one.sha: one for one in told}, end)


def _chain(by_sha: Mapping[str, Told], end: str) -> list[Told]:
    """The way back along first parents, oldest first."""
    found = []
    at = by_sha.get(end)
    while at:
        found.append(at)
        at = by_sha.get(at.parents[0]) if at.parents else None
    return found[::-1]


def _joins(chain: Sequence[Told], start: str | None) -> bool:
    """Whether the way along first parents begins right after the start."""
    return not chain or next(iter(chain[0].parents), None) == start


def _blamed(repo: Repo, start: str | None, end: str) -> dict[str, str]:
    """By path, the last commit between two that touched it, merges aside."""
    span = f"{start}..{end}" if start else end
    printed = repo.run(
        "log", "-z", "--no-merges", "--no-renames", "--name-only", "--format=%x01%H", span, "--"
    ).decode(errors="replace")
    blamed: dict[str, str] = {}
    for block in printed.split("\1")[1:]:
        sha, *paths = block.split("\0")
        for path in paths:
            blamed.setdefault(path.lstrip("\n"), sha)
    return blamed


def _one(repo: Repo, sha: str) -> Told:
    printed = repo.run("log", "-1", f"--format={_FORMAT}", sha, "--").decode(errors="replace")
    return _told(printed.rstrip("\n").removesuffix("\1").split("\0"))


def _with_named(repo: Repo, told: Sequence[Told], named: set[str]) -> list[Told]:
    """The commits, with those that files name though nothing new came in (a branch set back)."""
    known = {one.sha for one in told}
    return [*(_one(repo, sha) for sha in sorted(named - known)), *told]


def _with_reach(told: Sequence[Told], chain: Sequence[Told]) -> list[Document]:
    """The commits as they are told; those that a merge brought in, with when it did."""
    by_sha = {one.sha: one for one in told}
    reached: dict[str, str] = {}
    for merge in chain:
        waiting = list(merge.parents[1:])
        while waiting:
            at = by_sha.get(waiting.pop())
            if at and at.sha not in reached and at not in chain:
                reached[at.sha] = merge.committed_at
                waiting += at.parents
    return [_commit(one, reached.get(one.sha)) for one in told]


def _commit(told: Told, reached: str | None) -> Document:
    found: Document = {"sha": told.sha, "committed_at": datetime.fromisoformat(told.committed_at)}
    more = {"subject": told.subject, "parents": list(told.parents), "reverts": told.reverts}
    if reached:
        found["reached_at"] = datetime.fromisoformat(reached)
    return found | {name: value for name, value in more.items() if value}


def _files(repo: Repo, step: _Step) -> list[Document]:
    def blame(paths: Sequence[str]) -> str:
        return next((step.blamed[path] for path in paths if path in step.blamed), step.commit.sha)

    return files_of(repo, step.entries, blame)


def _fitting(document: Document) -> GitChange:
    """The change, told in less detail as far as it has to be: words, then the lines of files.

    Raises `Conflict` where even its paths are too many.
    """
    for lose in ((), ("text",), ("words", "header"), ("hunks", "symbols", "moved")):
        _without(document, lose)
        change = GitChange.model_validate(document)
        if len(change.model_dump_json(exclude_defaults=True)) <= MOST_BYTES:
            return change
    raise Conflict(f"the range changes too much to be told at once: cut it up ({DEEPEN})")


def _without(document: Document, names: Sequence[str]) -> None:
    for file in document["files"]:
        if "hunks" in names and file.get("hunks"):
            file["cut"] = True
        for part in (file, *file.get("hunks", ())):
            for name in names:
                part.pop(name, None)
