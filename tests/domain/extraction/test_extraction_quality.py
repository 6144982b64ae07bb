"""Share of extracted memories worth keeping, and of the right kind, on labelled sessions.

The talks are our own, half of them held out: rules are mended by the others. The labels are of what
is distilled from the real sessions, by the hash of each text: kinds that fit, none where it is not
worth keeping. Both were judged by reading.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from reverie.domain.extraction.conversation.topic_segmentation import segment_turns
from reverie.domain.extraction.rule_extractor import ExtractedMemory, extract_memories
from reverie.domain.text.turns import TurnText, condense_tool_output
from tests.support.extraction import START, build_turns
from tests.support.real_transcripts import TRANSCRIPTS, needs_transcripts, read_turns

HERE = Path(__file__).parent
LEAST = 0.8
KEPT = 0.75
"""The share of what is worth keeping that is kept at least: a digest is to be short."""


@dataclass
class Judged:
    """Counts of segments: all, those worth keeping, those of a fitting kind among them."""

    made: int = 0
    worth: int = 0
    kind: int = 0

    def add(self, segment: ExtractedMemory, fits: list[str] | None) -> None:
        """Counts a segment; `fits` are its kinds, nothing where it is not worth keeping."""
        self.made += 1
        self.worth += bool(fits)
        self.kind += segment.kind.value in (fits or ())

    def check(self, name: str) -> None:
        """Prints both precisions and holds them to the least."""
        worth, kind = self.worth / self.made, self.kind / self.worth
        print(f"{name}: {self.made} segments, worth keeping {worth:.2f}, kind {kind:.2f}")
        assert worth >= LEAST
        assert kind >= LEAST


@pytest.mark.parametrize("half", ["dev", "held_out"])
def test_memories_distilled_from_a_conversation_are_useful_and_of_the_right_kind(half: str) -> None:
    judged, sought, found = Judged(), 0, 0
    for talk in json.loads((HERE / "segment_talks.json").read_text("utf-8")):
        if talk["half"] != half:
            continue
        made = [
            one
            for part in segment_turns(build_turns(*map(tuple, talk["turns"])))
            for one in extract_memories([part])
        ]
        for one in made:
            judged.add(one, next((k for said, k in talk["keep"] if said in one.content), None))
        sought += len(talk["keep"])
        found += sum(any(said in one.content for one in made) for said, _ in talk["keep"])
    print(f"{half}: {found} of {sought} things to keep were kept")
    judged.check(half)
    assert found / sought >= KEPT


@needs_transcripts
def test_memories_distilled_from_real_sessions_are_useful_and_of_the_right_kind() -> None:
    labels: dict[str, list[str]] = json.loads((HERE / "segment_labels.json").read_text("utf-8"))
    judged, unknown = Judged(), 0
    for path in sorted(TRANSCRIPTS.glob("*.md")):
        for part in segment_turns(_real(path)):
            for one in extract_memories([part]):
                name = hashlib.sha256(one.content.encode()).hexdigest()[:12]
                unknown += name not in labels
                if name in labels:
                    judged.add(one, labels[name])
    print(f"{unknown} segments without a label")
    assert not unknown
    assert judged.made >= 39
    judged.check("real sessions")


def _real(path: Path) -> list[TurnText]:
    return [
        TurnText(
            UUID(int=i),
            i,
            turn.role,
            condense_tool_output(turn.tool, turn.content) if turn.role == "tool" else turn.content,
            turn.at or START,
            turn.tool,
        )
        for i, turn in enumerate(read_turns(path))
    ]
