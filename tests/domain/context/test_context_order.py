"""What comes first in the context block, and what a line says beside its text."""

from __future__ import annotations

from datetime import timedelta

from reverie.domain.context import context_block
from reverie.domain.context.budgets import ContextBudgets
from reverie.domain.context.line_candidates import ContextInput
from reverie.domain.core.kinds import Kind
from tests.domain.context.test_context_block import headings, list_lines, memory, render, words
from tests.domain.made_up_memories import NOW


def test_lessons_follow_identity_and_nothing_displaces_them() -> None:
    lesson = memory(1, Kind.LESSON, "Never trust the clock", created_at=NOW - timedelta(days=90))
    others = [
        memory(n, kind, "x " * 30, pinned=n % 2 == 0)
        for n, kind in enumerate([Kind.BUG, Kind.DECISION, Kind.CONTEXT] * 4, start=10)
    ]
    own = memory(2, Kind.IDENTITY, "I am Ann")
    budgets = ContextBudgets(hot=70, warm=70, stale=0, session=0, files=0, entries=3)
    block = context_block.render_context_block(ContextInput([*others, lesson, own]), budgets, words)
    assert block.memory_ids[:2] == (own.id, lesson.id)
    assert block.omitted


def test_of_many_lessons_each_gives_a_beginning_rather_than_some_nothing() -> None:
    lessons = [memory(n, Kind.LESSON, f"lesson{n} " * 90) for n in range(1, 9)]
    budgets = ContextBudgets(hot=0, warm=400, stale=0, session=0, files=0, entries=50)
    block = context_block.render_context_block(ContextInput(lessons), budgets, words)
    assert set(block.memory_ids) == {lesson.id for lesson in lessons}
    assert block.omitted == ()


def test_a_decision_says_how_old_it_is_and_a_memory_its_key() -> None:
    made = memory(1, Kind.DECISION, "Ship weekly", key="ship]day")
    noted = memory(2, Kind.CONVENTION, "Use tabs", key="convention:0af3")
    given_ = ContextInput([made, noted], now=NOW + timedelta(days=3))
    assert set(list_lines(render(given_, 999, words))) == {
        "- [global 00000001 key=ship)day] Ship weekly (3 days ago)",
        "- [global 00000002] Use tabs",
    }


def test_what_was_done_since_the_last_session_is_listed_and_older_work_is_not() -> None:
    done, old, todo = (memory(n, Kind.TASK, f"Task {n}") for n in range(1, 4))
    states = {done.id: "done", old.id: "done", todo.id: "todo"}
    block = render(
        ContextInput([done, old, todo], task_states=states, done_tasks=[done]), 999, words
    )
    assert headings(block)[1:] == ["### Active tasks", "### Done since the last session"]
    assert list_lines(block) == ["- [global 00000003] ○ Task 3", "- [global 00000001] ✓ Task 1"]


def test_the_rules_of_the_team_go_before_what_a_person_prefers_and_the_block_says_so() -> None:
    rule = memory(1, Kind.CONVENTION, "Use tabs", scope="project/shop")
    wish = memory(2, Kind.PREFERENCE, "I prefer spaces", scope="user/ann")
    markdown = render(ContextInput([wish, rule]), 999, words).markdown
    rules, preferences = markdown.split("### Preferences\n")
    assert "Use tabs" in rules
    assert preferences.startswith(f"{context_block.PRECEDENCE}\n- [user/ann")
    assert context_block.PRECEDENCE not in render(ContextInput([wish]), 999, words).markdown
