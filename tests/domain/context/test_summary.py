"""The rule-made summary of a scope: sections, order, size cap, updates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.context.scope_summary import (
    needs_rebuild,
    remove_lines,
    render_summary,
    summarize_memories,
)
from reverie.domain.core.kinds import Kind

DAY = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Note:
    kind: Kind
    content: str
    pinned: bool = False
    confidence: float = 0.8
    updated_at: datetime = DAY


def words(text: str) -> int:
    return len(text.split())


NOTES = [
    Note(Kind.BUG, "The pool leaked because of timeouts"),
    Note(Kind.CONVENTION, "Always run the linter"),
    Note(Kind.DECISION, "Use NATS", updated_at=DAY - timedelta(days=3)),
    Note(Kind.DECISION, "Use Postgres"),
    Note(Kind.SESSION, "Session: add a flag\n- asked this → did that"),
]


def test_kinds_have_sections_in_a_fixed_order() -> None:
    assert summarize_memories(NOTES, words, 200).text == (
        "## Conventions\n- Always run the linter\n\n"
        "## Decisions\n- Use Postgres\n- Use NATS\n\n"
        "## Bugs and fixes\n- The pool leaked because of timeouts\n\n"
        "## Recent sessions\n- Session: add a flag"
    )


def test_pinned_memories_come_first_then_by_confidence_and_age() -> None:
    pinned = Note(Kind.DECISION, "Pinned", pinned=True, confidence=0.1)
    sure = Note(Kind.DECISION, "Sure", confidence=1.0, updated_at=DAY - timedelta(days=9))
    lines = summarize_memories([*NOTES, sure, pinned], words, 200).text.splitlines()
    start = lines.index("## Decisions")
    assert lines[start + 1 : start + 4] == ["- Pinned", "- Sure", "- Use Postgres"]


def test_a_large_section_leaves_room_for_the_others() -> None:
    loud = [Note(Kind.CONVENTION, f"Rule number {i} says always do this") for i in range(100)]
    text = summarize_memories([*loud, *NOTES], words, 120).text
    assert "## Decisions" in text
    assert "## Bugs and fixes" in text


def test_anchors_are_not_summarized_and_no_input_yields_no_text() -> None:
    assert summarize_memories([Note(Kind.FILE, "src/a.py")], words, 100).text == ""
    assert summarize_memories([], words, 100).text == ""
    assert summarize_memories(NOTES, words, 0).text == ""


@given(
    st.lists(
        st.builds(
            Note,
            kind=st.sampled_from(Kind),
            content=st.text(min_size=1, max_size=80),
            pinned=st.booleans(),
            confidence=st.floats(0, 1),
        ),
        max_size=30,
    ),
    st.integers(0, 120),
)
def test_the_summary_keeps_its_cap_and_does_not_depend_on_the_order(
    notes: list[Note], cap: int
) -> None:
    notes = [replace(note, updated_at=DAY + timedelta(hours=i)) for i, note in enumerate(notes)]
    text = summarize_memories(notes, words, cap).text
    assert words(text) <= cap
    assert summarize_memories(list(reversed(notes)), words, cap).text == text


@given(st.lists(st.text(min_size=1, max_size=400), max_size=12), st.integers(0, 12))
def test_a_removed_memory_is_left_out_and_the_rest_stays(contents: list[str], kept: int) -> None:
    notes = [Note(Kind.DECISION, content) for content in contents]
    whole = summarize_memories(notes, len, 100_000).text
    gone = contents[kept:]
    assert remove_lines(whole, []) == whole
    assert remove_lines(whole, contents) == ""
    assert set(remove_lines(whole, gone).splitlines()) <= set(whole.splitlines())


def test_a_heading_without_lines_is_removed() -> None:
    summary = "## Decisions\n- a\n- b\n\n## How to\n- c"
    assert remove_lines(summary, ["c"]) == "## Decisions\n- a\n- b"
    assert remove_lines(summary, ["a", "b\n- more"]) == "## How to\n- c"


@given(
    st.lists(
        st.tuples(
            st.sampled_from([Kind.DECISION, Kind.BUG, Kind.SESSION, Kind.FILE]),
            st.text("ab \n-", min_size=1, max_size=300),
            st.integers(0, 24),
        ),
        max_size=24,
    ),
    st.integers(0, 60),
)
def test_its_sources_reproduce_the_summary(given: list[tuple[Kind, str, int]], cap: int) -> None:
    notes = [Note(k, text, updated_at=DAY + timedelta(hours=h)) for k, text, h in given]
    told = summarize_memories(notes, words, cap)
    again = summarize_memories(told.sources, words, cap)
    assert (again.text, again.is_complete) == (told.text, True)
    assert render_summary((note.kind, note.content) for note in told.sources) == told.text
    shown = [note for note in notes if note.kind is not Kind.FILE]
    assert told.is_complete == (len(told.sources) == len(shown))


def test_a_truncated_summary_is_rebuilt_when_there_is_room() -> None:
    assert needs_rebuild(was_complete=False, weights_changed=True, tokens=100, cap=100)
    assert needs_rebuild(was_complete=False, weights_changed=False, tokens=80, cap=100)
    assert not needs_rebuild(was_complete=False, weights_changed=False, tokens=95, cap=100)
    assert not needs_rebuild(was_complete=True, weights_changed=True, tokens=0, cap=100)
