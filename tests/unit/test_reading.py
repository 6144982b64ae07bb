"""What is stored of an anchor, as the rules of staleness read it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from reverie.domain.staleness import Anchored
from reverie.staleness.reading import anchored
from reverie.store.doubts import Touching

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def read(**meta: Any) -> Anchored:
    memory = UUID(int=1)
    return anchored(
        Touching(memory, UUID(int=2), "project/p", meta, None, None, "text", NOON, None), "src/a.py"
    )


def test_a_memory_knows_a_file_from_when_its_session_wrote_it_or_its_lines_were_seen() -> None:
    earlier, later = (NOON - HOUR).isoformat(), (NOON + HOUR).isoformat()
    assert (read().known_at, read().wrote) == (NOON, None)
    assert (read(wrote=earlier).known_at, read(wrote=earlier).wrote) == (NOON, NOON - HOUR)
    assert read(wrote=later).known_at == NOON + HOUR
    seen = read(since=earlier, wrote=later, lines=[[1, 2]])
    assert (seen.known_at, seen.wrote) == (NOON - HOUR, NOON + HOUR)
    assert (read(since="soon", wrote="x").known_at, read(wrote="x").wrote) == (NOON, None)
