"""Counts and samples of what the rules extract from real sessions.

Run from the root of the project: `python -m benchmarks.quality.extraction [--samples N]
[FOLDER]`, where the folder holds SpecStory files.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from uuid import UUID

from reverie.domain.core.kinds import Kind
from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.entities.recognition import extract_entities
from reverie.domain.extraction.conversation.topic_segmentation import segment_turns
from reverie.domain.extraction.rule_extractor import (
    ExtractedMemory,
    build_session_memory,
    extract_memories,
)
from reverie.domain.extraction.wording import discourse_markers
from reverie.domain.graph.clustering import (
    MAX_MEMORIES,
    MIN_MEMORIES,
    MIN_SESSIONS,
    TopicCentre,
    cluster_topics,
)
from reverie.domain.text.index_terms import index_text
from reverie.domain.text.turns import TurnText, condense_tool_output
from tests.support.real_transcripts import read_turns

DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
SEED = 7
NEAR = 0.8
NAMED = re.compile(r"`[^`]+`|\d|[a-z][A-Z]|\w/\w|[\w-]+\.[a-z]{2,4}\b")
OUTPUT = re.compile(
    r"\[Request interrupted|<[a-z-]+>|^\s*[$#>] |exit code \d|\d+ passed in|npm ERR|Traceback \("
    r"|^(?:ok|FAIL|PASS)\s|Syncing markdown|Process completed",
    re.I | re.M,
)


def turns_of(path: Path) -> list[TurnText]:
    """The turns as they would be stored: tool outputs condensed."""
    epoch = datetime(2000, 1, 1, tzinfo=UTC)
    return [
        TurnText(
            UUID(int=i),
            i,
            turn.role,
            condense_tool_output(turn.tool, turn.content) if turn.role == "tool" else turn.content,
            turn.at or epoch,
            turn.tool,
        )
        for i, turn in enumerate(read_turns(path))
    ]


def report(path: Path) -> list[ExtractedMemory]:
    """Prints one line for a session and gives its memories."""
    turns = turns_of(path)
    started = time.perf_counter()
    slices = segment_turns(turns)
    whole = build_session_memory(slices)
    memories = [memory for part in slices for memory in extract_memories([part])]
    memories += [whole] if whole else []
    spent = time.perf_counter() - started
    kinds = Counter(memory.kind.value for memory in memories)
    listed = " ".join(f"{kind}:{count}" for kind, count in kinds.most_common())
    print(
        f"{path.name[:40]:40} turns {len(turns):4} slices {len(slices):2} "
        f"memories {len(memories):3} {spent * 1000:5.0f} ms  {listed}"
    )
    return memories


def stands_alone(memory: ExtractedMemory) -> bool:
    """Whether it names what it speaks of: it begins with no word that leans on another text."""
    return not discourse_markers.DANGLING_REFERENCE.match(memory.content)


def names_or_reasons(memory: ExtractedMemory) -> bool:
    """Whether it stands alone, and names a path, code or a number, or gives a reason."""
    told = (
        memory.files
        or discourse_markers.CAUSE.search(memory.content)
        or NAMED.search(memory.content)
    )
    return stands_alone(memory) and bool(told)


def is_noise(memory: ExtractedMemory) -> bool:
    """Whether it is a tool's output, a greeting, an announcement or a wrapper."""
    text = memory.content.removeprefix("Session: ")
    wordless = discourse_markers.PLEASANTRY.match(text) or discourse_markers.NARRATION.match(text)
    return bool(wordless or OUTPUT.search(memory.content))


def duplicates(memories: list[ExtractedMemory]) -> tuple[int, int]:
    """Pairs of near-copies in other words (which the slow path merges or leaves), and texts that
    come again as they are (which a dream makes one memory of)."""
    texts = Counter(memory.content for memory in memories if memory.kind is not Kind.SESSION)
    distinct = {text: set(index_text(text).split()) for text in texts}
    near = sum(
        len(a & b) / len(a | b) >= NEAR for a, b in combinations(distinct.values(), 2) if a and b
    )
    return near, sum(count - 1 for count in texts.values())


def show_topics(sessions: list[list[ExtractedMemory]]) -> None:
    """Prints what the sessions, as those of one project, keep being about."""
    said: dict[str, UUID] = {}
    touched: defaultdict[str, dict[UUID, set[int]]] = defaultdict(lambda: defaultdict(set))
    for session, memories in enumerate(sessions):
        for memory in (one for one in memories if one.kind is not Kind.SESSION):
            names = {*memory.files, *extract_paths(memory.content)}
            names |= {entity.label for entity in extract_entities(memory.content)}
            for name in names:
                one = said.setdefault(memory.content, UUID(int=len(said)))
                touched[name][one].add(session)
    found = cluster_topics(
        TopicCentre(name, frozenset(memories))
        for name, memories in touched.items()
        if MIN_MEMORIES <= len(memories) <= MAX_MEMORIES
        and len(set().union(*memories.values())) >= MIN_SESSIONS
    )
    listed = ", ".join(f"{one.centre.name} {len(one.members)}" for one in found)
    print(f"topics, as of one project: {len(found)}, with their memories: {listed or 'none'}")


SHARES = {
    "stand alone": stands_alone,
    "stand alone and name a path, code, a number or a reason": names_or_reasons,
    "noise": is_noise,
}


def main(folder: Path, samples: int) -> int:
    """Reports on every file; exit code 2 where there is none."""
    files = sorted(folder.glob("*.md"))
    if not files:
        print(f"distil is left out: there are no transcripts in {folder}")
        return 2
    sessions = [report(path) for path in files]
    memories = [memory for session in sessions for memory in session]
    size = sum(len(memory.content) for memory in memories) / len(memories)
    each = len(memories) / len(files)
    print(f"\n{len(memories)} memories, {each:.1f} a session, {size:.0f} characters each")
    for label, sign in SHARES.items():
        found = [memory for memory in memories if sign(memory)]
        print(f"{label}: {len(found)}, {len(found) / len(memories):.1%}")
    left, same = duplicates(memories)
    print(f"said in several sessions with the same words: {same}; near-copies left: {left}")
    show_topics(sessions)
    lasting = [memory for memory in memories if memory.kind is not Kind.SESSION]
    chosen = random.Random(SEED).sample(lasting, min(samples, len(lasting)))
    for memory in chosen:
        print(f"\n[{memory.kind.value} {memory.priority:.2f}] {memory.content}")
        print(f"    files {list(memory.files)} tags {list(memory.tags)}")
    return 0


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path, nargs="?", default=DEFAULT)
    arguments.add_argument("--samples", type=int, default=0, help="memories to print")
    given = arguments.parse_args()
    sys.exit(main(given.folder, given.samples))
