"""How a memory's confidence decays with age and rises with use."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.core.confidence import (
    FLOOR,
    HALF_LIVES,
    ORPHAN_AFTER_DAYS,
    DecayPolicy,
    current_confidence,
    has_decayed,
    is_permanent,
    parse_half_lives,
)
from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.kinds import KIND_POLICIES, Kind
from reverie.domain.core.memory import Memory, MemoryStatus, MemoryUsage
from tests.domain.made_up_memories import NOW, build_memory

STAY = sorted(kind for kind, how in KIND_POLICIES.items() if not how.decays)
FADE = sorted(kind for kind, how in KIND_POLICIES.items() if how.decays)


def memory(days: float = 0, kind: Kind = Kind.DECISION, **fields: Any) -> Memory:
    made = days_ago(days)
    return build_memory(kind, **{"created_at": made, "updated_at": made, **fields})


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


memories = st.builds(
    memory,
    days=st.floats(0, 5000),
    kind=st.sampled_from(Kind),
    confidence=st.floats(0, 1),
    pinned=st.booleans(),
    linked=st.booleans(),
    status=st.sampled_from(MemoryStatus),
    confirmed_at=st.none() | st.floats(0, 5000).map(days_ago),
    use=st.builds(
        MemoryUsage,
        st.integers(0, 9),
        st.none() | st.floats(0, 5000).map(days_ago),
        st.floats(0, 1),
    ),
)


@given(memories, st.floats(0, 5000))
def test_confidence_stays_within_its_bounds_and_never_rises_with_time(
    one: Memory, days: float
) -> None:
    now, later = current_confidence(one, NOW), current_confidence(one, NOW + timedelta(days=days))
    full = min(1.0, one.confidence + one.use.boost)
    assert min(FLOOR, full) <= later <= now <= full <= 1


@given(memories, st.floats(0, 1))
def test_the_order_of_confidence_is_kept_over_time(one: Memory, base: float) -> None:
    other = Memory(**(one.__dict__ | {"confidence": base}))
    low, high = sorted((one, other), key=lambda each: each.confidence)
    assert current_confidence(low, NOW) <= current_confidence(high, NOW)


@given(memories)
def test_using_a_memory_never_lowers_its_confidence(one: Memory) -> None:
    used = MemoryUsage(one.use.count + 1, NOW, min(1.0, one.use.boost + 0.2))
    assert current_confidence(one, NOW) <= current_confidence(one, NOW, use=used) <= 1


@pytest.mark.parametrize("kind", STAY)
def test_permanent_kinds_keep_their_confidence(kind: Kind) -> None:
    assert current_confidence(memory(10_000, kind), NOW) == 0.8
    assert not has_decayed(memory(10_000, kind), NOW)


@pytest.mark.parametrize("kind", FADE)
def test_decaying_kinds_lose_half_in_a_half_life_down_to_a_floor(kind: Kind) -> None:
    assert current_confidence(memory(0, kind), NOW) == 0.8
    assert current_confidence(memory(HALF_LIVES[kind], kind), NOW) == pytest.approx(0.4)
    assert current_confidence(memory(10_000, kind), NOW) == FLOOR
    assert has_decayed(memory(10_000, kind), NOW)


def test_identity_lessons_and_pinned_memories_never_decay() -> None:
    assert {Kind.IDENTITY, Kind.LESSON} <= set(STAY)
    assert current_confidence(memory(10_000, pinned=True), NOW) == 0.8
    assert is_permanent(memory(pinned=True))


def test_without_decay_nothing_fades_and_nothing_is_archived() -> None:
    off = DecayPolicy(enabled=False)
    assert current_confidence(memory(10_000), NOW, off) == 0.8
    assert not has_decayed(memory(10_000), NOW, off)
    assert not has_decayed(memory(10_000, confidence=0.05), NOW, off)


def test_the_floor_is_what_is_left_and_where_memories_are_archived() -> None:
    high = DecayPolicy(floor=0.3)
    assert current_confidence(memory(10_000), NOW, high) == 0.3
    assert has_decayed(memory(60, confidence=0.8), NOW, high)
    assert not has_decayed(memory(30, confidence=0.8), NOW, high)


def test_two_half_lives_leave_a_quarter() -> None:
    lives = DecayPolicy(parse_half_lives({"default": 7}))
    assert current_confidence(memory(14, confidence=1.0), NOW, lives) == pytest.approx(0.25)
    assert current_confidence(
        memory(14, confidence=1.0, linked=False), NOW, lives
    ) == pytest.approx(0.25)
    assert current_confidence(memory(14, Kind.LESSON, confidence=1.0), NOW, lives) == 1.0


def test_half_lives_are_set_by_kind_alias_or_default() -> None:
    lives = parse_half_lives({"default": 10, "choice": 7})
    assert (lives[Kind.DECISION], lives[Kind.BUG]) == (7, 10)
    assert parse_half_lives({}) == HALF_LIVES
    with pytest.raises(InvalidInput, match="mood"):
        parse_half_lives({"mood": 3})


def test_superseded_memories_decay_twice_as_fast() -> None:
    old = memory(30, status=MemoryStatus.SUPERSEDED, confidence=1.0)
    assert current_confidence(old, NOW) == pytest.approx(0.25)


def test_orphans_decay_faster_once_they_had_time_to_be_linked() -> None:
    young, old = ORPHAN_AFTER_DAYS, ORPHAN_AFTER_DAYS + 20
    assert current_confidence(memory(young, linked=False), NOW) == current_confidence(
        memory(young), NOW
    )
    assert current_confidence(memory(old, linked=False), NOW) < current_confidence(memory(old), NOW)


def test_confirming_or_using_a_memory_restarts_its_decay_and_marking_does_not() -> None:
    assert current_confidence(memory(60, confirmed_at=NOW), NOW) == 0.8
    assert current_confidence(memory(60, use=MemoryUsage(1, NOW, 0.2)), NOW) == 1.0
    assert current_confidence(memory(60, updated_at=NOW, staleness=0.5), NOW) == pytest.approx(0.2)


def test_a_neighbour_is_boosted_without_restarting_its_decay() -> None:
    assert current_confidence(memory(30, use=MemoryUsage(boost=0.2)), NOW) == pytest.approx(0.5)
