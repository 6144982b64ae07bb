"""Which files a memory extracted from a conversation is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from reverie.domain.extraction.conversation.topic_segmentation import segment_turns
from reverie.domain.extraction.conversation.work_log import (
    collect_work_log,
    find_last_writes,
    find_related_files,
)
from reverie.domain.extraction.rule_extractor import build_session_memory, extract_memories
from reverie.domain.text.turns import TurnText, condense_tool_output

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
UPDATED = "```\nThe file {} has been updated successfully.\n```"


def turns(*said: tuple[str, str]) -> list[TurnText]:
    """One a minute; what is no user's or assistant's is the tool of that name."""
    found = []
    for n, (who, content) in enumerate(said):
        tool = None if who in {"user", "assistant"} else who
        text = condense_tool_output(tool, content) if tool else content
        role = "tool" if tool else who
        found.append(TurnText(UUID(int=n + 1), n, role, text, NOON + n * MINUTE, tool))
    return found


def edit(path: str) -> tuple[str, str]:
    return "Edit", UPDATED.format(path)


WORK = turns(
    ("user", "Totals are wrong, find out why and put it right."),
    ("Read", "`./shop/src/cart/total.py`"),
    ("Read", "`./shop/src/rates/total.py`"),
    ("assistant", "Money is added as floats in `sum_up` in `src/cart/total.py`."),
    edit("shop/src/cart/total.py"),
    (
        "assistant",
        "Fixed the rounding because floats are no money: `sum_up` adds cents in line 12.",
    ),
)


def test_a_memory_is_related_to_the_files_it_names_as_tools_named_them() -> None:
    work, end = collect_work_log(WORK), WORK[-1].at
    assert find_related_files("src/cart/total.py sums up", (), work, end) == (
        "shop/src/cart/total.py",
    )
    assert find_related_files("It is in total.py", (), work, WORK[1].at) == (
        "shop/src/cart/total.py",
    )
    assert find_related_files("It is in total.py", (), work, WORK[2].at) == (
        "shop/src/rates/total.py",
    )
    assert find_related_files("See docs/new.md", (), work, end) == ("docs/new.md",)


def test_a_code_name_stands_for_the_one_file_mentioned_beside_it() -> None:
    work, end = collect_work_log(WORK), WORK[-1].at
    assert find_related_files("`sum_up` adds floats", (), work, end) == ("shop/src/cart/total.py",)
    assert find_related_files("Floats are no money", (), work, end) == ()
    elsewhere = turns(("assistant", "`sum_up` is in `a/one.py`.\n`sum_up` is in `b/two.py`, too."))
    assert find_related_files("`sum_up` adds", (), collect_work_log(elsewhere), end) == ()
    listed = turns(("assistant", "`sum_up` is in `a/one.py` or in `b/two.py`."))
    assert find_related_files("`sum_up` adds", (), collect_work_log(listed), end) == ()


def test_the_last_write_of_a_file_before_a_moment_is_found() -> None:
    work = collect_work_log(turns(edit("src/a.py"), ("assistant", "One."), edit("src/a.py")))
    assert find_last_writes(["src/a.py"], work, NOON) == (("src/a.py", NOON),)
    assert find_last_writes(["repo/src/a.py"], work, NOON + MINUTE) == (("repo/src/a.py", NOON),)
    assert find_last_writes(["src/a.py"], work, NOON + 9 * MINUTE) == (
        ("src/a.py", NOON + 2 * MINUTE),
    )
    assert find_last_writes(["src/b.py"], work, NOON + 9 * MINUTE) == ()


def test_a_created_file_is_taken_from_the_last_tool_message() -> None:
    said = "File created successfully at: /w/src/n.py"
    made = f"```py\n# File notes.txt updated\n```\n\n```text\n{said}\n```"
    assert collect_work_log(turns(("Write", made))).write_times == {"src/n.py": (NOON,)}


def test_digests_attach_files_to_memories_with_their_write_times() -> None:
    slices = segment_turns(WORK)
    found = [*extract_memories(slices), build_session_memory(slices)]
    about = [one for one in found if one and one.files]
    assert {file for one in about for file in one.files} == {"shop/src/cart/total.py"}
    fixed = next(one for one in about if "cents" in one.content)
    assert fixed.file_writes == (("shop/src/cart/total.py", WORK[4].at),)


def test_a_change_to_a_file_that_is_told_in_few_words_is_the_outcome_of_its_request() -> None:
    work = turns(
        ("user", "The function ensure_resume_args has several paths, and no test looks at them."),
        edit("shop/exec_test.go"),
        (
            "assistant",
            "Done. Created `exec_test.go` with 9 test cases covering all the paths:\n\n"
            "| Case | Scenario |\n|---|---|\n| 1 | Nil args |\n| 2 | Empty args |\n\n"
            "The last case is an edge case that documents the current behaviour when the flag "
            "exists but has no following argument - it appends a new `--resume` flag.",
        ),
    )
    [memory] = [one for one in extract_memories(segment_turns(work)) if one.record]
    assert "Done: Created `exec_test.go` with 9 test cases" in memory.content
    assert memory.files == ("shop/exec_test.go",)
