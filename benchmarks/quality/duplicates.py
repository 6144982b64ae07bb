"""Prints how well duplicates and contradictions are told apart with the real embedder.

Run from the root of the project: `python -m benchmarks.quality.duplicates`.
"""

from __future__ import annotations

import asyncio

from benchmarks.support.common import parser, show
from reverie.domain.graph.duplicate_detection import DuplicateVerdict
from reverie.inference.embedder import load_embedder
from reverie.testing.models import model_home
from tests.domain.extraction.duplicate_pairs import Pair, measure, pairs

SPLITS = ("dev", "held_out")


async def cosines(given: list[Pair]) -> dict[Pair, float]:
    """The cosine of the two texts of each pair."""
    embedder = load_embedder(home=model_home())
    try:
        older = await embedder.embed([pair.older for pair in given])
        newer = await embedder.embed([pair.newer for pair in given])
    finally:
        embedder.close()
    return dict(zip(given, (older * newer).sum(axis=1).tolist(), strict=True))


def main() -> None:
    """The figures of each split, the spread of cosines by label, and every mistake."""
    rows, wrong = [], []
    near = asyncio.run(cosines([pair for split in SPLITS for pair in pairs(split)]))
    for split in SPLITS:
        found = measure(pairs(split), near.get)
        figures = (found.merge_precision, found.merge_recall)
        against = (found.contradiction_precision, found.contradiction_recall)
        rows.append([split, len(pairs(split)), *(f"{n:.3f}" for n in (*figures, *against))])
        wrong += [(split, *one) for one in found.wrong]
    columns = ["split", "pairs", "merge precision", "recall", "contradiction precision", "recall"]
    show("Verdicts on labelled pairs", columns, rows)
    spread = []
    for label in DuplicateVerdict:
        of = sorted(score for pair, score in near.items() if pair.label is label)
        spread.append(
            [label, *(f"{of[int(q * (len(of) - 1))]:.3f}" for q in (0, 0.1, 0.5, 0.9, 1))]
        )
    show("Cosine by label", ["label", "min", "p10", "p50", "p90", "max"], spread)
    for split, pair, taken in wrong:
        print(f"{split:8} {pair.label} taken for {taken} ({near[pair]:.2f}):")
        print(f"    {pair.older}\n    {pair.newer}")


if __name__ == "__main__":
    parser(__doc__).parse_args()
    main()
