"""Where a session is cut into topics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.extraction.conversation.topic_segmentation import (
    LONG_PAUSE,
    MAX_CHARS,
    MAX_TURNS,
    segment_turns,
)
from reverie.domain.text.turns import TurnText

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def turns(*said: tuple[str, str], gap: timedelta = timedelta(minutes=1)) -> list[TurnText]:
    return [
        TurnText(UUID(int=i), i, role, content, START + i * gap)
        for i, (role, content) in enumerate(said)
    ]


def sizes(found: list[TurnText]) -> list[int]:
    return [len(part.turns) for part in segment_turns(found)]


LOGIN = "the login cookie expires and the session middleware rejects the request"
CHART = "the revenue chart draws monthly bars with a colour legend per region"


def test_another_topic_begins_a_new_segment() -> None:
    found = turns(
        ("user", f"Find out why {LOGIN}"),
        ("assistant", f"I see: {LOGIN} since the cookie has no domain"),
        ("user", f"Please change how {CHART}"),
        ("assistant", f"Changed: {CHART}, legend at the bottom"),
    )
    assert sizes(found) == [2, 2]


def test_the_same_topic_stays_in_its_segment() -> None:
    found = turns(
        ("user", f"Find out why {LOGIN}"),
        ("assistant", f"I see: {LOGIN} since the cookie has no domain"),
        ("user", f"Then fix that {LOGIN}"),
        ("assistant", f"Fixed: {LOGIN} no more"),
    )
    assert sizes(found) == [4]


def test_a_confirmation_never_begins_a_segment() -> None:
    found = turns(("user", f"Look at why {LOGIN}"), ("assistant", "Shall I?"), ("user", "yup"))
    assert sizes(found) == [3]


def test_a_slash_command_begins_a_segment_with_its_text() -> None:
    command = "<command-name>/review</command-name><command-args>12</command-args>"
    found = turns(
        ("user", f"Why is it that {LOGIN}"),
        ("assistant", "Because of the domain."),
        ("user", command),
        ("user", f"Review that {LOGIN}"),
        ("assistant", "Reviewed."),
    )
    assert sizes(found) == [2, 3]


def test_a_long_pause_begins_a_segment() -> None:
    found = turns(("user", f"Find why {LOGIN}"), ("user", f"Again, why {LOGIN}"), gap=LONG_PAUSE)
    assert sizes(found) == [1, 1]


def test_another_ticket_begins_a_segment() -> None:
    found = turns(
        ("user", f"Work on PROJ-12: {LOGIN}"),
        ("assistant", f"Done, {LOGIN}"),
        ("user", f"Now PROJ-13: {LOGIN}"),
        ("assistant", f"Done, {LOGIN}"),
    )
    assert sizes(found) == [2, 2]


TURN = st.tuples(
    st.sampled_from(["user", "assistant", "tool"]),
    st.one_of(st.text(max_size=80), st.sampled_from([LOGIN, CHART, "/clear", "x" * 9000, "yes"])),
)


@given(st.lists(TURN, max_size=200))
def test_every_turn_is_in_one_segment_in_order_and_segments_are_bounded(
    said: list[tuple[str, str]],
) -> None:
    found = turns(*said)
    parts = segment_turns(list(reversed(found)))
    assert [turn for part in parts for turn in part.turns] == found
    for part in parts:
        assert 0 < len(part.turns) <= MAX_TURNS
        size = sum(len(turn.content) for turn in part.turns)
        assert size <= MAX_CHARS or len(part.turns) == 1
