"""Measures topic segmentation of conversations, by words and by vectors.

Run from the root of the project: `python -m benchmarks.quality.topic_segmentation`. Needs
DevMemBench: its sessions are joined to one, and each place where the user asks for something is
to be a cut where a session began, and none elsewhere.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from uuid import UUID

from benchmarks.quality.digest_answers import FOLDER, read
from benchmarks.support.common import parser, show
from reverie.domain.extraction.conversation.topic_segmentation import (
    Vector,
    build_windows,
    is_request,
    segment_turns,
)
from reverie.domain.text.turns import TurnText
from reverie.inference.embedder import load_embedder
from reverie.inference.model_catalogue import DEFAULT_MODEL
from reverie.testing.models import model_home

START = datetime(2026, 1, 5, tzinfo=UTC)


def joined() -> tuple[list[TurnText], set[int]]:
    """All turns in one session, and where a session of its own began."""
    turns: list[TurnText] = []
    begun: set[int] = set()
    for one in read("sessions.json"):
        begun.add(len(turns))
        for said in one["messages"]:
            n = len(turns)
            at = START + timedelta(minutes=n)
            turns.append(TurnText(UUID(int=n), n, said["role"], said["content"], at))
    return turns, begun - {0}


def row(label: str, cuts: set[int], gold: set[int]) -> list[str]:
    """Precision, recall and their harmonic mean."""
    right = len(cuts & gold)
    precision, recall = right / max(len(cuts), 1), right / len(gold)
    mean = 2 * right / (len(cuts) + len(gold))
    return [label, *(f"{figure:.2f}" for figure in (precision, recall, mean))]


def cuts_of(turns: Sequence[TurnText], vectors: Sequence[Vector] | None) -> set[int]:
    """Where slices begin, but for the first."""
    sizes = [len(part.turns) for part in segment_turns(turns, vectors)]
    return set(accumulate(sizes[:-1]))


async def measure() -> None:
    """Prints both ways."""
    turns, gold = joined()
    home = model_home()
    embedder = load_embedder(DEFAULT_MODEL, home, home / "models", 1, download=False)
    made = await embedder.embed(build_windows(turns))
    vectors = [[float(value) for value in vector] for vector in made]
    places = sum(is_request(turn) for turn in turns)
    rows = [row("by words", cuts_of(turns, None), gold)]
    rows.append(row("by vectors", cuts_of(turns, vectors), gold))
    title = f"{len(gold)} topics among {places} requests of {len(turns)} turns"
    show(title, ["", "precision", "recall", "F1"], rows)


def main() -> int:
    """0, or 2 where the set is not there."""
    if not FOLDER.exists():
        print(f"slices is left out: {FOLDER} is not there")
        return 2
    asyncio.run(measure())
    return 0


if __name__ == "__main__":
    parser(__doc__).parse_args()
    sys.exit(main())
