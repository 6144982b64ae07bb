"""What a decision record holds of a conversation, and when a record amends another."""

from __future__ import annotations

from uuid import UUID

import pytest

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.amendments import find_amendment
from reverie.domain.extraction.conversation.topic_segmentation import TopicSegment, segment_turns
from reverie.domain.extraction.records.statement_selection import MAX_RECORD_CHARS
from reverie.domain.extraction.rule_extractor import (
    build_session_memory,
    extract_memories,
)
from tests.support.extraction import UPLOADS, build_turns, memories, records

WITH_ASIDE = (
    *UPLOADS,
    ("user", "Right. By the way, the proxy test is flaky, rerun it."),
)


def test_a_conversation_with_one_decision_leaves_one_record_with_problem_rule_and_refusal() -> None:
    (record,) = records(*WITH_ASIDE)
    decided, *rest = record.content.splitlines()
    assert record.record is not None
    assert record.record["problem"].startswith("Uploads of large videos fail at the proxy")
    assert decided.startswith("Decided: Recap of upload_limits: /videos takes at most 2 GB")
    assert "flaky" not in record.content
    assert any(line.startswith("Refused: Raise the limit to 2 GB") for line in rest)
    assert record.kind is Kind.DECISION
    assert len(record.content) <= MAX_RECORD_CHARS


def test_a_record_has_the_parts_of_its_text_and_cites_the_turns_they_come_from() -> None:
    (record,) = records(*WITH_ASIDE)
    assert record.record is not None
    assert record.record["decided"][0].startswith("Recap of upload_limits")
    assert record.record["refused"][0]["proposal"].startswith("Raise the limit")
    assert {UUID(int=1), UUID(int=3), UUID(int=6)} <= set(record.turns)


FACTS = [
    f"`load_{n}` of `table_{n}.py` keeps row {n * 7} in queue q{n}, because worker {n * 13} reads "
    f"shard {n * 3} at offset {n * 101}."
    for n in range(40)
]
DONE = " ".join(f"Changed {fact}" for fact in FACTS[20:30])
REFUSALS = [
    turn
    for n in range(3)
    for turn in (
        ("assistant", f"I could keep `table_{n}.py` in the job {'of region 4 ' * 15}?"),
        ("user", f"No, the job of `table_{n}.py` is wrong, {'as it locks 7 rows ' * 9}."),
    )
]


@pytest.mark.parametrize(
    "said",
    [
        [("assistant", f"{' '.join(FACTS[:11])} Fix it?"), ("user", "yes"), ("assistant", DONE)],
        [*REFUSALS, ("tool", "`make test`"), ("assistant", "\n\n".join(FACTS))],
        [("tool", "`make test`"), ("assistant", f"Fixed it: {'; '.join(FACTS[:11])[:-1]}.")],
    ],
    ids=["an answer with what was done", "refusals with long reasons", "a long sentence"],
)
def test_a_record_of_a_long_talk_keeps_to_its_limit(said: list[tuple[str, str]]) -> None:
    asked = f"Why does `ledger.py` lose the writes {'of two workers ' * 20}at night?"
    (record,) = records(("user", asked), *said)
    assert len(record.content) <= MAX_RECORD_CHARS


def test_a_proposal_that_was_refused_does_not_stand_as_decided() -> None:
    (record,) = records(*UPLOADS[:3])
    assert record.record is not None
    assert not any("every route, so that" in text for text in record.record["decided"])


@pytest.mark.parametrize(
    ("amendment", "is_whole"),
    [
        (
            "Amendment to upload_limits: /videos takes at most 4 GB now. Everything else stays.",
            False,
        ),
        (
            "Amended rule in full, superseding the original: in upload_limits /videos takes at "
            "most 4 GB, every other route at most 10 MB, without a retry.",
            True,
        ),
    ],
)
def test_an_amendment_is_found_by_its_words_and_replaces_what_it_restates(
    amendment: str, is_whole: bool
) -> None:
    (older,) = records(*WITH_ASIDE)
    found = find_amendment({"problem": amendment, "decided": [amendment]}, older.content)
    assert found is not None
    assert found.is_whole is is_whole


def test_a_decision_on_another_subject_is_no_amendment() -> None:
    (older,) = records(*WITH_ASIDE)
    other = "Amendment to the deploy policy: releases go out on Tuesday, not on Friday."
    assert find_amendment({"problem": other, "decided": [other]}, older.content) is None


CHANGE = (
    "assistant",
    "Replaced the `lookup` table in `src/rates.py` with a cache, because it was read on each call.",
)
TOOL = ("tool", "Run\n\n`make test`\n\n```text\n12 passed\n```")


@pytest.mark.parametrize(
    ("opening", "problem"),
    [
        ("Let's address this: 2. The rates are looked up twice", "The rates are looked up twice"),
        ("let's address 3. Rates are looked up twice.", "Rates are looked up twice."),
        (
            "Implement the following plan: # Plan: Look the rates up once",
            "Look the rates up once",
        ),
        ("/fix the rates are looked up twice", "The rates are looked up twice"),
        ("This isn't good. The rates are looked up twice.", "The rates are looked up twice."),
        (
            "I think the network is slow. The rates take four seconds to load.",
            "The rates take four seconds to load.",
        ),
        (
            "The rates are looked up twice:\nrate, _ := client.Lookup(day)",
            "The rates are looked up twice:",
        ),
        ("Another review comment: The rates are looked up twice.", "The rates are looked up"),
        ("Let's address - Rates are looked up twice.", "Rates are looked up twice."),
        ("Ah... it works BUT we can do BETTER! The rates take four seconds.", "The rates take"),
        ("In `src/rates.py` at line 40, rates are read twice.", "In `src/rates.py`, rates are"),
    ],
)
def test_the_problem_is_told_without_what_introduces_it(opening: str, problem: str) -> None:
    (record,) = records(("user", opening), TOOL, CHANGE)
    assert record.record is not None
    assert str(record.record["problem"]).startswith(problem.rstrip("."))


@pytest.mark.parametrize(
    "answer",
    ["yes implement it", "Go ahead and do it", "I already tested that with real data in /srv/x."],
)
def test_an_assent_or_a_remark_is_no_problem(answer: str) -> None:
    (record,) = records(
        ("user", "The rates of `src/rates.py` are looked up on each call."),
        ("assistant", "The `lookup` table is read again since it is local. Should I change it?"),
        ("user", answer),
        TOOL,
        CHANGE,
    )
    assert record.record is not None
    assert record.record["problem"].startswith("The rates of `src/rates.py` are looked up")
    assert answer[:12] not in record.content


@pytest.mark.parametrize(
    "order",
    [
        "Commit the two changes separately, please.",
        "Discuss with me any delta to the plan before you go on.",
        "Please don't push these changes yet.",
    ],
)
def test_an_order_for_the_work_at_hand_is_no_memory(order: str) -> None:
    assert memories(("user", order), ("assistant", "Will do.")) == []


@pytest.mark.parametrize(
    "report",
    [
        "All 12 tests pass now and the linter is clean.",
        "Pushed the branch because the build succeeded; it is up to date with `origin/main`.",
        "The linter only shows pre-existing warnings in `src/a.py`, not related to my changes.",
    ],
)
def test_the_state_of_the_work_is_no_memory(report: str) -> None:
    assert records(("user", "Bring the rates up to the new layout."), ("assistant", report)) == []


def test_places_in_files_are_told_by_name_and_not_by_line() -> None:
    report = (
        "- Lookup - `src/rates.py` lines 40-55, returns the rate\n\n"
        "The cause is in `src/rates.py:40` because `lookup` is local (lines 40-55)."
    )
    (record,) = records(("user", "Why are the rates slow?"), ("assistant", report))
    assert "`src/rates.py` because `lookup` is local." in record.content
    assert "40" not in record.content
    (clock,) = records(
        ("user", "Why is the date wrong?"),
        ("assistant", "`2025-01-15T00:00:00Z` becomes `19:00:00` locally, due to the time zone."),
    )
    assert "`19:00:00`" in clock.content


def test_a_list_is_not_cut_from_what_introduces_it() -> None:
    report = (
        "The `lookup` table is read on each call because it is local.\n\nThis involves:\n\n"
        "- Adding a `cache` field to the `Rates` schema\n\nThe options are:\n\n"
        "1. A `dict` that stores 100 rates\n2. An `lru_cache` that stores 50 rates\n\n"
        "Behaviour of the loader:\n\n- `load()`:\n  - returns 100 rates\n  - expires in 5 minutes"
    )
    (record,) = records(("user", "Why are the rates slow?"), ("assistant", report))
    assert "Adding a `cache`" not in record.content
    assert "lru_cache" not in record.content
    assert "Behaviour of the loader: `load()`: returns 100 rates; expires in 5" in record.content


def test_what_was_done_stands_apart_from_what_was_found() -> None:
    report = (
        "The rates are slow because `lookup` is local.\n\n**Modified files:**\n\n"
        "- Replaced `lookup` with a cache in `src/rates.py`\n- Removed `src/old_rates.py`"
    )
    (record,) = records(("user", "Make the rates faster."), TOOL, ("assistant", report))
    assert "Found: The rates are slow because" in record.content
    assert "\nDone: Modified files: Replaced `lookup` with a cache" in record.content


def test_what_an_agent_tells_on_the_way_is_left_out_of_its_report() -> None:
    (record,) = records(
        ("user", "Make the rates of `src/rates.py` faster."),
        ("assistant", "The `old_rates` module uses a table, so it returns 40 rates per second."),
        TOOL,
        CHANGE,
    )
    assert "old_rates" not in record.content
    assert "with a cache" in record.content


def test_a_question_beside_the_work_is_no_part_of_its_record() -> None:
    turns = build_turns(
        ("user", "Make the rates of `src/rates.py` faster."),
        TOOL,
        CHANGE,
        ("user", "what does `go mod graph` do?"),
        ("assistant", "`go mod graph` returns the module graph, so that you can `grep` it."),
    )
    (record,) = (one for one in extract_memories([TopicSegment(tuple(turns))]) if one.record)
    assert "graph" not in record.content


def test_the_commands_that_check_the_work_are_one_memory() -> None:
    found = memories(
        ("user", "Make the rates faster."),
        ("tool", "Run\n\n`make lint && make test`\n\n```text\nok\n```"),
        CHANGE,
    )
    checks = [one for one in found if "`make" in one.content]
    assert [one.content for one in checks] == [
        "Checks after a change of the project: `make lint`, `make test`"
    ]


def test_the_command_of_one_folder_is_no_check_of_the_whole_project() -> None:
    found = memories(
        ("user", "Make the rates faster."),
        ("tool", "Run\n\n`go test ./pkg/rates/... && make lint`\n\n```text\nok\n```"),
        CHANGE,
    )
    checks = [one.content for one in found if "`make" in one.content]
    assert checks == ["Checks after a change of the project: `make lint`"]


def test_a_session_of_one_subtopic_or_one_that_taught_nothing_has_no_memory() -> None:
    assert build_session_memory(segment_turns(build_turns(*WITH_ASIDE))) is None
    capital = build_turns(("user", "What is the capital of France?"), ("assistant", "Paris."))
    assert build_session_memory(segment_turns(capital)) is None


def test_the_context_that_a_review_command_brings_is_part_of_the_review() -> None:
    context = "## Context\n\nChanges not staged for commit:\n\tmodified: src/rates.py"
    report = "The `lookup` silently fails because `day` is missing in `src/rates.py`."
    command = "<command-message>code-review</command-message>\n<command-name>/code-review"
    turns = build_turns(("user", f"{command}</command-name>"), ("user", context))
    reply = build_turns(*[("assistant", report)] * 3)[2]
    assert not extract_memories([TopicSegment((*turns, reply))])


def test_a_decision_does_not_repeat_the_problem_and_has_no_marks_of_emphasis() -> None:
    wish = "We want to show a link after each upload. Its text should be `Open the archive` only."
    done = "Added **`show_link()`**, **`read_link()`** to `src/link.py`, because both are needed."
    (record,) = records(("user", wish), TOOL, ("assistant", done))
    assert record.content.count("after each upload") == 1
    assert "*" not in record.content


@pytest.mark.parametrize("label", ["Decision:", "**Decision:**", "Decided:"])
@pytest.mark.parametrize("gap", [" ", "\n\n"])
def test_a_root_cause_stays_beside_a_decision_whose_label_is_told_once(
    label: str, gap: str
) -> None:
    cause = "Root cause: the worker acknowledges a job before it has written the result."
    decision = f"{label} acknowledge after the commit, and retry at most three times."
    (record,) = records(
        ("user", "Jobs get lost when a worker of `queue.py` restarts."),
        ("assistant", f"{cause}{gap}{decision}"),
    )
    assert cause in record.content
    assert "Decided: Acknowledge after the commit" in record.content
    assert record.content.count("Deci") == 1


def test_a_request_that_ends_in_the_code_of_an_advice_keeps_its_problem() -> None:
    said = (
        "let's address 2. DRY: The same 2-line pattern is repeated 5 times across the code:\n"
        "  local, _ := flags.GetBool()\n  2. Consider extracting this to a helper like:\n  func f()"
    )
    report = "Extracted the repeated pattern into a helper of `flags.go`."
    (record,) = records(("user", said), TOOL, ("assistant", report))
    assert record.content.startswith("DRY: The same 2-line pattern is repeated 5 times")


def test_an_order_to_find_out_more_is_no_problem_where_what_it_is_about_was_named() -> None:
    """The first report ends a subtopic, so what is asked on begins its own."""
    (record,) = records(
        ("user", "Two customers write that they were charged twice. Can you look at pay.py?"),
        ("tool", "pay.py\n38  def charge(order: Order) -> Receipt:"),
        ("assistant", "charge() in pay.py tries again after a timeout, with a new key each time."),
        (
            "user",
            "Find out why that charges twice, then: a timeout means that it failed, I thought.",
        ),
        (
            "assistant",
            "Found it. Root cause: customers were charged twice because a timeout does not mean "
            "that the charge failed. The fix is one idempotency key for each order.",
        ),
        ("user", "Then do that."),
        ("assistant", "Done. charge() in pay.py keeps its idempotency key through all retries."),
    )
    assert record.record is not None
    assert record.record["problem"] == "Two customers write that they were charged twice."
