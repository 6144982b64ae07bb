"""Compares stale marks by line with `git blame` over many edited repositories.

python -m benchmarks.quality.staleness_against_blame 40
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from benchmarks.support.common import parser, show
from tests.staleness.git_blame_reference import Checked, check


def main(repositories: int) -> None:
    """Builds them one after the other and prints what was missed and flagged."""
    total = Checked()
    for seed in range(repositories):
        with tempfile.TemporaryDirectory() as folder:
            commits = random.Random(seed).randint(2, 30)
            total += check(Path(folder) / "clone", seed, commits)
    rows = [
        ("lines edited", total.edited, f"{total.missed} missed"),
        ("lines that only moved or stayed", total.moved, f"{total.flagged} flagged"),
    ]
    show(f"{repositories} repositories", ("memories of", "n", "wrong"), rows)


if __name__ == "__main__":
    asked = parser(__doc__)
    asked.add_argument("repositories", nargs="?", type=int, default=200)
    main(asked.parse_args().repositories)
