"""Stored anchors are read into the values that the staleness rules use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from reverie.domain.staleness.file_changes import FileAnchor
from reverie.store.staleness.stale_marks import TouchingMemory
from reverie_services.staleness.marks.row_parsing import parse_anchor

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def read(**meta: Any) -> FileAnchor:
    memory = UUID(int=1)
    return parse_anchor(
        TouchingMemory(memory, UUID(int=2), "project/p", meta, None, None, "text", NOON, None),
        "src/a.py",
    )


def test_an_anchor_is_known_from_the_write_of_its_session_or_the_sight_of_its_lines() -> None:
    earlier, later = (NOON - HOUR).isoformat(), (NOON + HOUR).isoformat()
    assert (read().known_at, read().written_at) == (NOON, None)
    assert (read(modified_at=earlier).known_at, read(modified_at=earlier).written_at) == (
        NOON,
        NOON - HOUR,
    )
    assert read(modified_at=later).known_at == NOON + HOUR
    seen = read(since=earlier, modified_at=later, lines=[[1, 2]])
    assert (seen.known_at, seen.written_at) == (NOON - HOUR, NOON + HOUR)
    assert (read(since="soon", modified_at="x").known_at, read(modified_at="x").written_at) == (
        NOON,
        None,
    )
