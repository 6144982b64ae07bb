"""Parsers of foreign text take time proportional to its length.

Each of these texts once took minutes, or would where time grew with the square of the length.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest

from benchmarks.quality.redaction import HOSTILE, distinct
from reverie.contracts.memories.git import GitChange
from reverie.domain.extraction.conversation.topic_segmentation import segment_turns
from reverie.domain.extraction.rule_extractor import build_session_memory, extract_memories
from reverie.domain.formats.memory_md import parse_memory_file
from reverie.domain.graph.duplicate_detection import (
    ComparedMemory,
    DuplicateVerdict,
    compare_memories,
)
from reverie.domain.redaction.redactor import redact
from reverie.domain.text.snippets import best_snippet
from reverie.domain.text.turns import TurnText
from reverie_services.staleness.webhooks.push_events import PushPayload, parse_push

LIMIT = 131_072
FILE = 1 << 20


def _filled(pattern: str, size: int) -> str:
    return (pattern * (size // len(pattern) + 1))[:size]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "mark",
    [
        lambda fill: f"<!-- segment:{fill(' ')}",
        lambda fill: f"<!-- segment: x -->\n<!-- {fill(' ')}x\nText.",
        lambda fill: f"<!-- segment: x -->\n<!-- {fill('a')} -->\nText.",
        lambda fill: f"<!-- segment: x -->\n<!-- {fill('a:[')} -->\nText.",
        lambda fill: f"<!-- segment: x -->\n<!-- {fill('a:[,')} -->\nText.",
        lambda fill: f"<!-- segment: x -->\n<!-- {fill('key: ')} -->\nText.",
        lambda fill: f"<!-- segment: x -->\nText.\n<!-- {fill(chr(92))}",
    ],
)
def test_an_edited_file_is_read_in_linear_time(mark: Callable[[Callable[[str], str]], str]) -> None:
    read = parse_memory_file(mark(lambda pattern: _filled(pattern, FILE)))
    assert all("Text." in segment.text for _, segment in read.segments)


@pytest.mark.timeout(20)
def test_a_snippet_of_a_long_text_for_a_long_question_takes_linear_time() -> None:
    paths = " ".join(f"src/f{number}.py" for number in range(5000))
    assert len(best_snippet(paths, f"needle {paths}", 240)) <= 250


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["not ", "from a ", "instead of "])
def test_texts_too_long_to_be_statements_are_not_compared_as_such(pattern: str) -> None:
    older, newer = (ComparedMemory(_filled(pattern, LIMIT) + end) for end in ("x", "y"))
    assert compare_memories(older, newer).verdict is DuplicateVerdict.SIMILAR


@pytest.mark.parametrize("line", ["a{}", "- it {}", "# Decision {}"])
def test_a_digest_takes_time_proportional_to_the_turns(line: str) -> None:
    text = "\n".join(map(line.format, range(20_000)))
    short = min(_digest_seconds(text[:6_000]) for _ in range(2))
    # Twice the proportion, and what is done once: a square would be eight times it.
    most = 8 * 2 * short + 0.1
    assert any(_digest_seconds(text[:48_000]) < most for _ in range(2))


def test_redaction_takes_time_proportional_to_the_text() -> None:
    slow = {}
    for text in (*HOSTILE, *distinct(LIMIT).values()):
        short = min(_processor_seconds(_filled(text, LIMIT // 16)) for _ in range(2))
        # Four times the proportion, and what is done once: a square would be eight times it.
        most = 8 * 4 * short + 0.02
        readings = (_processor_seconds(_filled(text, LIMIT // 2)) for _ in range(2))
        if all(long >= most for long in readings):
            slow[text[:24]] = most
    assert not slow


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["__init__.py", "file{0}.py", "file{0}"])
def test_a_push_that_moves_many_files_is_read_in_linear_time(name: str) -> None:
    paths = [name.format(n) for n in range(4_000)]
    commit = {
        "id": "a" * 40, "timestamp": "2026-03-02T10:00:00Z",
        "added": [f"new/{n}/{path}" for n, path in enumerate(paths)],
        "removed": [f"old/{n}/{path}" for n, path in enumerate(paths)],
    }  # fmt: skip
    push = PushPayload.model_validate(
        {"ref": "refs/heads/main", "before": "b" * 40, "after": "a" * 40, "commits": [commit]}
    )
    change = parse_push(push, "shop")
    assert isinstance(change, GitChange)
    gone = [one for one in change.files if one.status == "deleted"]
    assert all(one.possible_path == one.path.replace("old", "new") for one in gone)


def _digest_seconds(text: str) -> float:
    """What extracting memories from a talk of such turns takes of the processor."""
    contents = [
        ("user", text), ("assistant", f"I propose to use Redis. {text}"), ("user", f"No, {text}"),
        ("assistant", f"Got it. {text}"),
    ]  # fmt: skip
    at = datetime(2026, 3, 1, tzinfo=UTC)
    turns = [TurnText(UUID(int=n), n, role, told, at) for n, (role, told) in enumerate(contents)]
    started = time.process_time()
    topics = segment_turns(turns)
    extract_memories(topics)
    build_session_memory(topics)
    return time.process_time() - started


def _processor_seconds(text: str) -> float:
    """What redacting takes of the processor."""
    started = time.process_time()
    redact(text)
    return time.process_time() - started
