"""Draws memories of real conversations at random, each beside its turns, to be judged by reading.

Run from the root of the project: `python -m benchmarks.quality.memory_samples [--seed N]
[--count N] [--half first|other]`. Prints Markdown: as many memories from each set (coding sessions,
DevMemBench, talks of sde-bench), and the turns that each cites. A reader judges whether a memory is
true to its turns, whole, useful later, and free of noise. Rules are chosen on every other
conversation (`first`), and judged on those between (`other`).
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from benchmarks.quality.extraction import turns_of
from benchmarks.quality.question_sets import DATA
from benchmarks.support.common import parser
from reverie.domain.extraction.conversation.topic_segmentation import build_windows, segment_turns
from reverie.domain.extraction.rule_extractor import (
    ExtractedMemory,
    build_session_memory,
    deduplicate_memories,
    extract_memories,
)
from reverie.domain.text.turns import TurnText
from reverie.inference.embedder import Embedder, load_embedder
from reverie.inference.model_catalogue import DEFAULT_MODEL
from reverie.testing.models import model_home

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
MAX_TURN_CHARS = 3_000
HALVES = ("first", "other")
Conversations = Mapping[str, Sequence[TurnText]]
Sample = tuple[str, ExtractedMemory, Sequence[TurnText]]


def read_sets() -> dict[str, Conversations]:
    """The conversations of each set by name."""
    folder = DATA / "transcripts"
    sessions = {path.stem: turns_of(path) for path in sorted(folder.glob("*.md"))}
    developers = {
        one["sessionId"]: _build_turns((m["role"], m["content"]) for m in one["messages"])
        for one in json.loads((DATA / "devmembench" / "sessions.json").read_text("utf-8"))
    }
    return {"transcripts": sessions, "devmembench": developers, "sde": dict(_iter_talks())}


def _iter_talks() -> Iterator[tuple[str, Sequence[TurnText]]]:
    folder = DATA / "sde"
    for task in json.loads((folder / "tasks-dev.json").read_text("utf-8")):
        own = task.get("conversations") or []
        for number, talk in enumerate(own if own and isinstance(own[0], list) else [own]):
            turns = _build_turns((turn["role"], turn["text"]) for turn in talk)
            yield f"{task['task_id']}/{number}", turns
    for number, talk in enumerate(json.loads((folder / "decoys.json").read_text("utf-8"))):
        yield f"decoy/{number}", _build_turns((t["role"], t["text"]) for t in talk["turns"])


def _build_turns(said: Iterator[tuple[str, str]]) -> list[TurnText]:
    return [
        TurnText(UUID(int=n), n, role, text, START + timedelta(minutes=n))
        for n, (role, text) in enumerate(said)
    ]


async def extract(turns: Sequence[TurnText], embedder: Embedder) -> list[ExtractedMemory]:
    """The memories that a dream would make of a conversation by rules."""
    windows = build_windows(turns)
    vectors = await embedder.embed(windows) if len(windows) > 1 else None
    rows = None if vectors is None else [[float(value) for value in row] for row in vectors]
    topics = segment_turns(turns, rows)
    memories = deduplicate_memories(m for topic in topics for m in extract_memories([topic]))
    overview = build_session_memory(topics, memories=memories)
    return [*memories, *([overview] if overview else [])]


async def draw(seed: int, count: int, half: str | None = None) -> list[Sample]:
    """Draws memories, as many from each set; titles of sessions alone are left out.

    `half`: one of `HALVES`; None for all conversations.
    """
    home = model_home()
    embedder = load_embedder(DEFAULT_MODEL, home, home / "models", 1, download=False)
    chance, drawn = random.Random(seed), list[Sample]()
    sets = read_sets()
    for name, conversations in sets.items():
        found = [
            (f"{name}/{key}", memory, turns)
            for number, (key, turns) in enumerate(conversations.items())
            if half is None or number % 2 == HALVES.index(half)
            for memory in await extract(turns, embedder)
            if not (memory.content.startswith("Session: ") and "\n" not in memory.content)
        ]
        drawn += chance.sample(found, min(len(found), count // len(sets)))
    return drawn


def render(number: int, sample: Sample) -> str:
    """A memory as Markdown, with the turns that it cites."""
    source, memory, turns = sample
    cited = [turn for turn in turns if turn.id in memory.turns]
    quotes = [
        f"> **{turn.role} {turn.ordinal}**: "
        + turn.content[:MAX_TURN_CHARS].replace("\n", "\n> ")
        + (" […]" if len(turn.content) > MAX_TURN_CHARS else "")
        for turn in cited
    ]
    head = f"## {number}. {memory.kind.value}, {source}"
    return "\n\n".join([head, f"```text\n{memory.content}\n```", *quotes])


def main() -> int:
    """0; 2 where the sets are not there."""
    arguments = parser(__doc__)
    arguments.add_argument("--seed", type=int, default=7)
    arguments.add_argument("--count", type=int, default=60)
    arguments.add_argument("--half", choices=HALVES)
    options = arguments.parse_args()
    if not DATA.exists():
        print(f"there is nothing to draw from: {DATA} is not there")
        return 2
    samples = asyncio.run(draw(options.seed, options.count, options.half))
    print(f"# {len(samples)} memories drawn with seed {options.seed}\n")
    print("\n\n".join(render(n, sample) for n, sample in enumerate(samples, 1)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
