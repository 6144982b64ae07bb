"""Texts labelled with what they speak of, and how well the rules find it.

`tests/unit/anchor_texts.json` holds two lists, `dev` and `held` (not looked at while the rules
were made), each of [text, label ...], a label being a sort and a normalised name. Names of
libraries and languages in prose (React, Python) are no entities: only what is imported, installed
or called a package is.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from reverie.domain.anchors import paths
from reverie.domain.entities import entities_of

LABELLED = Path(__file__).parent / "unit" / "anchor_texts.json"


@dataclass
class Score:
    """Counts by sort, under `all` too, and every mistake."""

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    mistakes: list[str] = field(default_factory=list)

    def precision(self, sort: str = "all") -> float:
        return self.right[sort] / ((self.right[sort] + self.wrong[sort]) or 1)

    def recall(self, sort: str = "all") -> float:
        return self.right[sort] / ((self.right[sort] + self.missed[sort]) or 1)


def texts(part: str) -> list[tuple[str, set[str]]]:
    """The texts of a part, each with its labels."""
    return [(text, set(labels)) for text, *labels in json.loads(LABELLED.read_text())[part]]


def found(text: str) -> set[str]:
    """Labels as the rules give them."""
    return {f"path {path}" for path in paths(text)} | {
        f"{one.sort.value} {one.name}" for one in entities_of(text)
    }


def score(labelled: list[tuple[str, set[str]]]) -> Score:
    """How the rules do on labelled texts."""
    made = Score()
    for text, labels in labelled:
        given = found(text)
        for counts, which in (
            (made.right, labels & given),
            (made.wrong, given - labels),
            (made.missed, labels - given),
        ):
            for label in which:
                counts.update([label.split(" ")[0], "all"])
        if given != labels:
            made.mistakes.append(f"+{given - labels or ''} -{labels - given or ''} {text[:70]!r}")
    return made
