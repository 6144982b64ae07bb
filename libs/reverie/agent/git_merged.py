"""Which branches new commits brought in, by a merge, a squash, a rebase or by moving ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reverie.agent.git_repo import Repo
from reverie.domain.merges import merged_branch

MOST_BRANCHES = 50
MOST_COMMITS = 50
"""How many of the last branches are compared with how many of the last commits."""
MOST_NAMED = 100
_BRANCHES = ("refs/heads", "refs/remotes")


@dataclass(frozen=True)
class Told:
    """A commit as git tells it."""

    sha: str
    parents: tuple[str, ...]
    committed_at: str
    subject: str
    reverts: str | None


def brought_in(repo: Repo, told: Sequence[Told], into: str, main: str | None) -> list[str]:
    """The branches that commits, oldest first, brought into a branch.

    A merge says so by its subject, or by whose head it took. A squash has the changes of the whole
    branch, rebased commits those of each of its; and a branch that main moved ahead to was made
    here, commit by commit. These three are looked for on `main` alone.
    """
    names = dict[str, None]()
    for one in told:
        if len(one.parents) > 1:
            said = merged_branch(one.subject)
            names |= dict.fromkeys([said] if said else _tips(repo, one.parents[1:]))
    if main in {None, into}:
        names |= dict.fromkeys(_without_merge(repo, told))
    plain = dict.fromkeys(name.removeprefix("origin/") for name in names)
    plain.pop(into, None)
    return list(plain)[:MOST_NAMED]


def _tips(repo: Repo, commits: Sequence[str]) -> list[str]:
    """The branches whose heads these commits are."""
    asked = [f"--points-at={sha}" for sha in commits]
    named = repo.text("for-each-ref", "--format=%(refname:lstrip=2)", *asked, *_BRANCHES).split()
    return [name for name in named if not name.endswith("/HEAD")]


def _without_merge(repo: Repo, told: Sequence[Told]) -> Iterator[str]:
    single = [one.sha for one in told if len(one.parents) < 2]
    if not single:
        return
    end, new = told[-1].sha, {one.sha for one in told}
    made = _made(repo, single[-MOST_COMMITS:])
    for ref, tip in _heads(repo):
        if tip in new:
            if _committed_here(repo, ref, tip):
                yield ref
        elif _is_within(repo, end, tip, *made):
            yield ref


def _made(repo: Repo, commits: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the files that commits changed, and git's numbers of the changes."""
    names = repo.run("show", "--name-only", "--no-renames", "-z", "--format=", *commits, "--")
    return _names(names), _changes(repo, commits)


def _is_within(repo: Repo, end: str, tip: str, names: frozenset[str], made: frozenset[str]) -> bool:
    """Whether what a branch changed, in all or commit by commit, is among the changes made."""
    fork = repo.fork(end, tip)
    if fork is None or fork == tip:
        return False
    own_names = repo.run("diff", "--name-only", "--no-renames", "-z", fork, tip)
    if not _names(own_names) <= names:
        return False
    if _numbers(repo, repo.run("diff", "--unified=0", fork, tip)) & made:
        return True
    own = repo.text("rev-list", "--no-merges", f"--max-count={MOST_COMMITS + 1}", f"{fork}..{tip}")
    commits = own.split()
    each = _changes(repo, commits) if len(commits) <= MOST_COMMITS else frozenset[str]()
    return bool(each) and each <= made


def _changes(repo: Repo, commits: Sequence[str]) -> frozenset[str]:
    """Git's numbers of what each commit changed, wherever the lines stand."""
    shown = repo.run("show", "--unified=0", "--no-ext-diff", "--format=commit %H", *commits, "--")
    return _numbers(repo, shown)


def _numbers(repo: Repo, patches: bytes) -> frozenset[str]:
    printed = repo.run("patch-id", "--stable", given=patches).decode()
    return frozenset(line.split()[0] for line in printed.splitlines())


def _committed_here(repo: Repo, ref: str, tip: str) -> bool:
    """Whether the branch was committed to in this clone: one that only begins there was not."""
    head = f"refs/heads/{ref}"
    printed = repo.run("reflog", "show", "--format=%H %gs", head, "--", ok=(0, 128)).decode(
        errors="replace"
    )
    return any(line.startswith(f"{tip} commit") for line in printed.splitlines())


def _heads(repo: Repo) -> list[tuple[str, str]]:
    """The branches that were committed to last, here and of remotes (`x`, `origin/x`), each with
    its last commit."""
    printed = repo.text(
        "for-each-ref", "--sort=-committerdate", f"--count={MOST_BRANCHES}",
        "--format=%(objectname) %(refname:lstrip=2)", *_BRANCHES,
    )  # fmt: skip
    pairs = (line.partition(" ") for line in printed.splitlines())
    return [(name, tip) for tip, _, name in pairs if not name.endswith("/HEAD")]


def _names(listed: bytes) -> frozenset[str]:
    return frozenset(listed.decode(errors="replace").replace("\n", "").split("\0")) - {""}
