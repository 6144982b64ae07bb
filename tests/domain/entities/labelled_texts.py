"""Loads texts labelled with the files and entities they mention, and scores the rules on them.

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

from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.entities.recognition import extract_entities

LABELLED = Path(__file__).with_name("anchor_texts.json")


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


def recognized_labels(text: str) -> set[str]:
    """Labels as the rules give them."""
    return {f"path {path}" for path in extract_paths(text)} | {
        f"{one.type.value} {one.name}" for one in extract_entities(text)
    }


def score(labelled: list[tuple[str, set[str]]]) -> Score:
    """How the rules do on labelled texts."""
    made = Score()
    for text, labels in labelled:
        given = recognized_labels(text)
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
