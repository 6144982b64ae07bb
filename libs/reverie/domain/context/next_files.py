"""Predicts the files that will be touched next, from the commits of a project and what was touched.

A file scores by how often it changed together with those that were touched, by how lately it
changed at all, by a common folder, and by a common name, as of a file and its test. The weights
were chosen on one half of a real history: `python -m benchmarks.quality.next_files`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TOGETHER_WEIGHT, RECENT_WEIGHT, FOLDER_WEIGHT, NAME_WEIGHT = 0.5, 2.0, 0.3, 0.6
COMMIT_HALF_LIFE = 14
"""Commits after which a change together counts half."""
RECENT_COMMITS, RECENT_DECAY = 40, 0.85
SIZE_EXPONENT = 0.8
"""A commit of many files says less about each of them."""
MAX_COMMIT_FILES = 30
"""A larger commit (a rename, a format) says nothing of what belongs together."""
OPEN_SHARE = 0.5
"""What an open file or a test counts, beside a file that was edited."""
_TEST_AFFIX = re.compile(r"^test_|[._-](?:test|spec)s?$")


@dataclass(frozen=True)
class CommittedFile:
    """A file of a commit; `old_path` if the commit renamed it."""

    path: str
    old_path: str | None = None
    is_deleted: bool = False


@dataclass(frozen=True)
class PredictedFile:
    """A file that will likely be touched, and the weightiest reason."""

    path: str
    score: float
    reason: str


@dataclass(frozen=True)
class TouchedFiles:
    """Paths in the repository: just edited, open, and those of the tests that were just run."""

    edited: Sequence[str] = ()
    opened: Sequence[str] = ()
    tests: Sequence[str] = ()

    def weights(self) -> dict[str, float]:
        """How much each of them counts."""
        others = dict.fromkeys([*self.opened, *self.tests], OPEN_SHARE)
        return {**others, **dict.fromkeys(self.edited, 1.0)}


def resolve_commits(commits: Iterable[Sequence[CommittedFile]]) -> tuple[list[list[str]], set[str]]:
    """The paths of commits by today's names, and the files that are gone; newest first."""
    names: dict[str, str] = {}
    seen: set[str] = set()
    gone: set[str] = set()
    resolved: list[list[str]] = []
    for commit in commits:
        paths: list[str] = []
        for file in commit:
            path = names.get(file.path, file.path)
            if path not in seen and file.is_deleted:
                gone.add(path)
            seen.add(path)
            paths.append(path)
            if file.old_path and file.old_path not in seen:
                names.setdefault(file.old_path, path)
        resolved.append(list(dict.fromkeys(paths)))
    return resolved, gone


def predict_files(
    commits: Iterable[Sequence[CommittedFile]], touched: TouchedFiles, limit: int
) -> list[PredictedFile]:
    """The most likely files, newest commits first in `commits`."""
    history, gone = resolve_commits(commits)
    scores = _score(history, touched.weights())
    ranked = sorted(
        ((sum(parts.values()), path, parts) for path, parts in scores.items() if path not in gone),
        key=lambda item: (-item[0], item[1]),
    )
    return [
        PredictedFile(path, round(score, 4), max(parts, key=lambda reason: parts[reason]))
        for score, path, parts in ranked[:limit]
    ]


def _score(
    history: Sequence[Sequence[str]], weights: dict[str, float]
) -> dict[str, dict[str, float]]:
    """The parts of each file's score, by reason."""
    scores: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    folders = {path.rpartition("/")[0] for path in weights}
    names = {_bare_name(path) for path in weights}
    norm = sum(weights.values()) ** SIZE_EXPONENT or 1.0
    changes: Counter[str] = Counter()
    for age, paths in enumerate(history):
        size = max(len(paths), 1) ** SIZE_EXPONENT
        if age < RECENT_COMMITS:
            for path in paths:
                scores[path]["changed lately"] += RECENT_WEIGHT * RECENT_DECAY**age / size
        if len(paths) > MAX_COMMIT_FILES:
            continue
        changes.update(paths)
        common = sum(weights.get(path, 0.0) for path in paths)
        together = TOGETHER_WEIGHT * 0.5 ** (age / COMMIT_HALF_LIFE) * common / (size * norm)
        for path in paths if common else ():
            scores[path]["changed together before"] += together
    for path, count in changes.items():
        familiarity = (1 + count.bit_length()) / 6
        if path.rpartition("/")[0] in folders:
            scores[path]["in the same folder"] += FOLDER_WEIGHT * familiarity
        if _bare_name(path) in names:
            scores[path]["has the same name"] += NAME_WEIGHT * familiarity
    return scores


def _bare_name(path: str) -> str:
    """The name of a file without its extension and what marks a test."""
    stem = path.rpartition("/")[2].lower().rpartition(".")
    return _TEST_AFFIX.sub("", stem[0] or stem[2])
