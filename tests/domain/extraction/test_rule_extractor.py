"""What the rules extract from a conversation."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.conversation.exchanges import extract_request
from reverie.domain.extraction.conversation.key_statements import extract_key_statements
from reverie.domain.extraction.conversation.topic_segmentation import segment_turns
from reverie.domain.extraction.records.statement_selection import MAX_RECORD_CHARS
from reverie.domain.extraction.rule_extractor import (
    MAX_MEMORIES,
    MAX_SESSION_CHARS,
    MIN_CONTENT_BYTES,
    ExtractedMemory,
    build_session_memory,
    extract_memories,
)
from reverie.domain.text.turns import TurnText, condense_tool_output
from tests.support.extraction import START, build_turns

SESSION = build_turns(
    ("user", "The CI fails to restore its cache: go.sum is not found. Find out why."),
    ("assistant", "Let me look at the workflow first."),
    ("tool", "Show it\n\n`cat .github/workflows/ci.yml`\n\n```text\nname: CI SECRETDUMP\n```"),
    (
        "assistant",
        "Perfect! The `setup-go` action looks for `go.sum` at the repository root. Since ours "
        "is in `cli/`, it cannot find it. Should I fix it?",
    ),
    ("user", "yup"),
    ("tool", "Run\n\n`go test ./... 2>&1 | tail -5`\n\n```text\nok pkg 1s\n```"),
    (
        "assistant",
        "Done. Here's a summary:\n\n**Changed files:**\n- `.github/workflows/ci.yml` - added "
        "`cache-dependency-path: cli/go.sum`\n- ✅ Good naming\n\n```yaml\nRAWCODE: 1\n```\n\n"
        "All tests pass. Let me know if you need anything else!",
    ),
    ("user", "Never cache in the release workflow, I prefer slow and certain releases there."),
    ("assistant", "Understood. I removed the cache from `.github/workflows/release.yml`."),
    ("user", "<command-name>/exit</command-name>"),
    ("user", "<local-command-stdout>Bye!</local-command-stdout>"),
)


def memories(found: list[TurnText] = SESSION) -> list[ExtractedMemory]:
    slices = segment_turns(found)
    whole = build_session_memory(slices)
    return extract_memories(slices) + ([whole] if whole else [])


def containing(words: str) -> ExtractedMemory:
    return next(memory for memory in memories() if words in memory.content)


def test_a_cause_cites_the_turn_that_stated_it_and_the_confirmation() -> None:
    cause = containing("cannot find it")
    assert UUID(int=4) in cause.turns


def test_a_preference_keeps_the_users_words_and_the_date_of_its_turn() -> None:
    wish = containing("slow and certain")
    assert wish.kind is Kind.PREFERENCE
    assert wish.priority >= 0.75
    assert wish.at >= START + timedelta(minutes=7)


def test_a_clause_that_begins_with_when_is_no_question() -> None:
    said = "When I work on TypeScript projects I always use bun, not npm or yarn."
    kept = memories(build_turns(("user", f"That's it for now. {said}"), ("assistant", "Got it.")))
    assert any(said in one.content and one.kind is Kind.PREFERENCE for one in kept)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("Draft the note to the two customers, please.", False),
        ("Note that the staging keys expire each Friday.", True),
    ],
)
def test_a_task_about_notes_is_no_rule_and_a_request_to_note_is(said: str, rule: bool) -> None:
    kept = memories(build_turns(("user", said), ("assistant", "Here it is.")))
    assert any(one.kind is not Kind.SESSION and said in one.content for one in kept) is rule


def test_a_short_conversation_yields_figures_rather_than_remarks() -> None:
    found = build_turns(
        ("user", "We need rate limiting on the upload endpoints of the service."),
        ("assistant", "Limits per address:\n\n- `/upload`: 10 requests/minute\n- `/list`: 300\n"),
        ("user", "That works. Is it fine to keep it as it is for the time being?"),
        ("assistant", "Implemented. It is fine in practice because nobody is likely to notice it."),
    )
    assert any("10 requests/minute" in one.content for one in memories(found))


def test_a_session_of_several_subtopics_is_summarized_in_one_memory() -> None:
    more = (
        ("user", "The nightly export writes rows twice, look at `export/writer.py` please."),
        ("tool", "Edit: `export/writer.py` [ok]"),
        ("assistant", "Fixed `export/writer.py`: the retry no longer repeats what was written."),
    )
    said = [(turn.role, turn.content) for turn in SESSION[:-2]]
    found = memories(build_turns(*said, *more))
    (whole,) = [memory for memory in found if memory.kind is Kind.SESSION]
    assert "go.sum is not found" in whole.content
    assert "the retry no longer repeats what was written" in whole.content
    assert len(whole.content) <= MAX_SESSION_CHARS
    assert whole.at == START


@pytest.mark.parametrize(
    "noise",
    ["SECRETDUMP", "RAWCODE", "Let me", "Perfect", "Bye!", "Should I", "Good naming", "exit"],
)
def test_noise_is_not_extracted(noise: str) -> None:
    assert all(noise not in memory.content for memory in memories())


def test_near_duplicates_become_one_that_cites_both() -> None:
    said = "The `importer` drops rows because the date column is parsed in local time."
    found = build_turns(
        ("user", "Why are there fewer orders at night than in the day?"),
        ("assistant", said),
        ("tool", "`make test`"),
        ("assistant", f"To be exact, there is a second place.\n\n{said}"),
    )
    kept = [m for m in memories(found) if "local time" in m.content and m.kind is not Kind.SESSION]
    assert len(kept) == 1
    assert {UUID(int=2), UUID(int=4)} <= set(kept[0].turns)
    assert kept[0].content.count("local time") == 1


def test_chinese_conversations_are_distilled_too() -> None:
    found = build_turns(
        ("user", "为什么数据库连接池在高峰期会耗尽？请调查一下。"),
        (
            "assistant",
            "好的。\n\n根因是请求超时后连接没有归还，导致连接池耗尽。已在 src/db/pool.py 修复。",
        ),
        ("user", "记住：以后所有查询必须设置超时。"),
    )
    contents = "\n".join(memory.content for memory in memories(found))
    assert "连接没有归还" in contents
    assert "必须设置超时" in contents
    rules = [memory.content for memory in memories(found) if memory.kind is Kind.CONVENTION]
    assert rules == ["记住：以后所有查询必须设置超时。"]
    assert not any(memory.content.startswith("好的") for memory in memories(found))


def test_an_answer_to_a_question_is_a_decision() -> None:
    found = [
        TurnText(UUID(int=1), 0, "user", "Add a promotional line after the sync.", START),
        TurnText(
            UUID(int=2),
            1,
            "tool",
            condense_tool_output(
                "AskUserQuestion", "**Which emoji should it be?**\n\n**Answer:** lightbulb"
            ),
            START,
            "AskUserQuestion",
        ),
    ]
    kept = next(memory for memory in memories(found) if "lightbulb" in memory.content)
    assert kept.kind is Kind.DECISION


def test_a_conversation_without_content_yields_nothing() -> None:
    assert memories(build_turns(("user", "hi"), ("assistant", "Hello! How can I help?"))) == []
    assert memories([]) == []


def test_tables_become_sentences_with_their_headings() -> None:
    table = "### Flags\n\n| Aspect | Before | After |\n|---|---|---|\n| Name | `-z` | `-l` |\n"
    assert [point.full_text for point in extract_key_statements(table)] == [
        "Flags: Name (Before: `-z`; After: `-l`)"
    ]


def test_of_a_pasted_log_the_users_words_and_the_error_are_extracted() -> None:
    pasted = (
        "The release fails again, look at it:\n\nRun actions/checkout@v4\nwith:\n  token: \n"
        "Downloading https://example.com/a.tar.gz\nError: Input required and not supplied: token"
    )
    assert extract_request(pasted) == (
        "The release fails again, look at it: Error: Input required and not supplied: token."
    )


@pytest.mark.timeout(30)
@pytest.mark.parametrize("unit", ["[", "a.", "a-", "_", "`a` ", "a@", "*", "|", "a/", "- a\n"])
def test_the_largest_repetitive_message_does_not_hang(unit: str) -> None:
    content = unit * (32_000 // len(unit))
    memories(
        build_turns(("user", "Look at why this is so."), ("assistant", content), ("user", content))
    )


PHRASES = st.sampled_from(
    [
        "We decided to use `Foo` instead of `Bar` because it is faster.",
        "Let me look.",
        "# Summary\n\n- Fixed `a/b.py`\n- Added tests",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "```\ncode",
        "yes",
        "Always run `make test` before a commit, please.",
        "<command-name>/review</command-name>",
        "根因是超时。",
        "word " * 300,
        "`" * 7,
    ]
)
TURN = st.tuples(
    st.sampled_from(["user", "assistant", "tool"]), st.one_of(PHRASES, st.text(max_size=120))
)


@example([("assistant", "0000" + "\x80" * 6 + "\U00010000" * 2), ("user", "yes")])
@given(st.lists(TURN, max_size=30))
def test_extracted_memories_are_bounded_cited_and_deterministic(
    said: list[tuple[str, str]],
) -> None:
    found = build_turns(*said)
    kept = memories(found)
    known = {turn.id for turn in found}
    assert kept == memories(found)
    assert len(kept) <= MAX_MEMORIES + 1
    for memory in kept:
        limit = MAX_SESSION_CHARS if memory.kind is Kind.SESSION else MAX_RECORD_CHARS
        assert len(memory.content) <= limit
        assert len(memory.content.encode()) >= MIN_CONTENT_BYTES or memory.kind is Kind.SESSION
        assert memory.turns
        assert set(memory.turns) <= known
        assert 0 <= memory.priority <= 1
        assert all(0 < len(tag) <= 64 for tag in memory.tags)


@pytest.mark.parametrize("label", ["Decision:", "**Decision:**", "- **Decision**:", "决定："])
def test_a_statement_that_an_agent_calls_a_decision_is_one(label: str) -> None:
    answer = (
        "The root cause was a missing index on orders.created_at; I added it in db/0007.sql. "
        f"{label} imports run in batches of 500 from now on."
    )
    if label.startswith("-"):
        answer = answer.replace(f" {label}", f"\n\n{label}")
    found = memories(
        build_turns(("user", "The nightly import times out. Why?"), ("assistant", answer))
    )
    kinds = {one.kind for one in found if "batches of 500" in one.content and one.kind != "session"}
    assert kinds == {Kind.DECISION}
