"""Loads labelled pairs of memories and measures the duplicate rules on them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from reverie.domain.graph.duplicate_detection import (
    MERGEABLE_VERDICTS,
    ComparedMemory,
    DuplicateVerdict,
    compare_memories,
)

_FILE = Path(__file__).with_name("duplicate_pairs.json")


@dataclass(frozen=True)
class Pair:
    """Two texts, the older first, and how they stand to each other."""

    label: DuplicateVerdict
    older: str
    newer: str


def pairs(split: str) -> list[Pair]:
    """The pairs of `dev` or `held_out`."""
    labelled = json.loads(_FILE.read_text("utf-8"))[split]
    return [Pair(DuplicateVerdict(label), *two) for label, both in labelled.items() for two in both]


@dataclass(frozen=True)
class Figures:
    """How well the rules did; `wrong` holds each pair that got another verdict."""

    merge_precision: float
    merge_recall: float
    contradiction_precision: float
    contradiction_recall: float
    wrong: list[tuple[Pair, DuplicateVerdict]]


def measure(
    given: Iterable[Pair], cosine: Callable[[Pair], float | None] = lambda pair: None
) -> Figures:
    """Judges every pair: a merge is right where the pair is a duplicate or refined."""
    counts: Counter[str] = Counter()
    wrong = []
    for pair in given:
        found = compare_memories(
            ComparedMemory(pair.older), ComparedMemory(pair.newer), cosine(pair)
        ).verdict
        if found is not pair.label:
            wrong.append((pair, found))
        for name, group in (
            ("merge", MERGEABLE_VERDICTS),
            ("against", {DuplicateVerdict.CONTRADICTING}),
        ):
            counts[name + " said"] += found in group
            counts[name + " true"] += pair.label in group
            counts[name + " both"] += found in group and pair.label in group
    return Figures(
        counts["merge both"] / max(counts["merge said"], 1),
        counts["merge both"] / max(counts["merge true"], 1),
        counts["against both"] / max(counts["against said"], 1),
        counts["against both"] / max(counts["against true"], 1),
        wrong,
    )
