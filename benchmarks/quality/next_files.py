"""Which files of the next commit are among the first five that are predicted, on real histories.

    python -m benchmarks.quality.next_files

Each commit is predicted from those before it, the files of the last one taken as just edited. The
weights were chosen on the commits of even number of the first history; those of odd number are
reported, and a second history that nothing was chosen on. Beside it stand the floors: the files
that changed together with them most often, and those that changed most often.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.support.common import show
from reverie.domain.context.next_files import (
    CommittedFile,
    TouchedFiles,
    predict_files,
    resolve_commits,
)
from tests.support.real_history import DATA, HISTORY

SECOND_HISTORY = DATA / "sde" / "boltons-history.jsonl"
FIRST, KNOWN, PREDICTED = 20, 300, 5
"""The first commit that is predicted, the commits that are known, the files that are predicted."""
Commit = list[CommittedFile]
Predictor = Callable[[Sequence[Commit], list[str]], list[str]]


def read_commits() -> list[Commit]:
    """The files of each commit that is no merge, oldest first."""
    with HISTORY.open() as lines:
        commits: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [
        [
            CommittedFile(file["path"], file.get("old_path"), file["status"] == "deleted")
            for file in commit["files"]
        ]
        for commit in commits
        if not commit["merge"] and commit["files"]
    ]


def read_second_history() -> list[Commit]:
    """The same of the host project of sde-bench; its lines are newest first."""
    with SECOND_HISTORY.open() as lines:
        commits: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [
        [
            CommittedFile(paths[-1], paths[0] if len(paths) > 1 else None, status[0] == "D")
            for status, *paths in commit["files"]
        ]
        for commit in reversed(commits)
        if commit["files"] and not commit["subject"].startswith("Merge ")
    ]


def ours(commits: Sequence[Commit], edited: list[str]) -> list[str]:
    """The prediction that an agent is given."""
    return [file.path for file in predict_files(commits, TouchedFiles(edited), PREDICTED)]


def together(commits: Sequence[Commit], edited: list[str]) -> list[str]:
    """The files that most often changed together with the edited ones."""
    return _most_common(commits, set(edited))


def most_changed(commits: Sequence[Commit], edited: list[str]) -> list[str]:
    """The files that changed most often."""
    return _most_common(commits, None)


def _most_common(commits: Sequence[Commit], edited: set[str] | None) -> list[str]:
    history, gone = resolve_commits(commits)
    counts = Counter(
        path
        for paths in history
        if edited is None or edited.intersection(paths)
        for path in paths
        if path not in gone
    )
    return [path for path, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))][
        :PREDICTED
    ]


def evaluate(commits: Sequence[Commit], predict: Predictor, parity: int) -> tuple[float, float]:
    """The share of commits of which a file is predicted, and the share of files that are.

    Of a commit that changes more than five files, five are as good as all. New files cannot be
    predicted, and do not count.
    """
    known: set[str] = set()
    hits: list[float] = []
    for number, commit in enumerate(commits):
        changed = {file.old_path or file.path for file in commit} & known
        if number >= FIRST and number % 2 == parity and changed:
            newest_first = list(reversed(commits[max(0, number - KNOWN) : number]))
            edited = [file.path for file in newest_first[0] if not file.is_deleted]
            found = changed.intersection(predict(newest_first, edited))
            hits.append(len(found) / min(PREDICTED, len(changed)))
        known -= {file.old_path for file in commit if file.old_path}
        known -= {file.path for file in commit if file.is_deleted}
        known |= {file.path for file in commit if not file.is_deleted}
    return sum(hit > 0 for hit in hits) / len(hits), sum(hits) / len(hits)


def main() -> int:
    """Prints both halves; 2 if the history is not here."""
    if not HISTORY.exists():
        print(f"the real git history is not here: expected at {HISTORY}", file=sys.stderr)
        return 2
    histories = [("chosen on: any", "reported: any", read_commits())]
    if SECOND_HISTORY.exists():
        histories.append(("even: any", "odd: any", read_second_history()))
    for first, second, commits in histories:
        rows = [
            (
                name,
                *(f"{share:.3f}" for half in (0, 1) for share in evaluate(commits, predict, half)),
            )
            for name, predict in (
                ("predicted", ours),
                ("changed together most often", together),
                ("changed most often", most_changed),
            )
        ]
        columns = ("first five", first, "files", second, "files")
        show(f"files of the next commit, {len(commits)} commits", columns, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
