"""What is kept of a session in which an agent works: requests, findings on the way, reviews."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.conversation.topic_segmentation import segment_turns
from reverie.domain.extraction.rule_extractor import build_session_memory, extract_memories
from tests.support.extraction import build_turns, memories, records

TOOL = ("tool", "Run\n\n`make test`\n\n```text\n12 passed\n```")
REPORT = (
    "# Code Review: PR #12\n\n## Line-by-Line Review\n\n**Lines 4-9 (new): the flag**\n"
    "- ✅ Good name\n\n## Top 2 Improvements\n\n### 1. **Missing check in `run`**\n\n"
    "The flag is on both commands, but only `sync` looks whether somebody is logged in.\n\n"
    "### 2. **Consider a shorter name**\n\nThe "
    "name is long.\n\n**Recommendation**: No new unit tests are needed, the branches are trivial."
)


def test_each_request_that_an_agent_worked_on_has_a_record_of_its_own() -> None:
    found = records(
        ("user", "The `--utc` flag should be called `--local-time`, since UTC is the default."),
        TOOL,
        ("assistant", "Renamed `--utc` to `--local-time` in `main.go` and inverted its default."),
        ("user", "Put a comment into `go.mod` about the other places that name the Go version."),
        TOOL,
        ("assistant", "Added a comment to `go.mod` that lists `ci.yml` and `release.yml`."),
    )
    assert [record.content.split()[0] for record in found] == ["Renamed", "Added"]
    assert "local-time" not in found[1].content


def test_what_an_agent_found_out_on_the_way_is_kept_and_cited() -> None:
    (record,) = records(
        ("user", "Write tests for the names of the export files in local time."),
        TOOL,
        (
            "assistant",
            "I see the issue. The `stamp` function calls `.Local()`, which takes the zone of the "
            "machine and not that of its argument. Let me fix the test.",
        ),
        TOOL,
        ("assistant", "Added four tests for `stamp` to `export_test.go`."),
    )
    assert "takes the zone of the machine" in record.content
    assert UUID(int=3) in record.turns
    assert "I see the issue" not in record.content


def test_the_outcome_of_a_request_is_kept_if_it_only_tells_of_tests() -> None:
    (record,) = records(
        ("user", "I also tried quotes and they seem fine, feel free to add those to the tests."),
        TOOL,
        (
            "assistant",
            "The test suite has 12 test cases for the various edge cases. "
            "Double quotes would require complex escaping in Go literals, so they are left out.",
        ),
    )
    assert "Double quotes would require complex escaping" in record.content


@pytest.mark.parametrize(
    ("cause", "is_told"),
    [
        ("src/label.py cuts an address after its fourth line.", True),
        ("Months are summed by name, and those of two years are one: src/chart.py.", True),
        ("It cuts an address after the fourth line, in src/label.py.", False),
        ("This is done twice by `print_label`.", False),
        ("The address is cut after a line.", False),
    ],
)
def test_a_cause_that_was_found_is_a_line_of_its_session_if_it_names_what_it_is_of(
    cause: str, is_told: bool
) -> None:
    said = (
        ("user", "The labels of parcels are printed without their country. Why?"),
        ("assistant", f"Root cause: {cause}"),
    )
    [memory] = [memory for memory in memories(*said) if memory.record]
    assert memory.headline == (f"Root cause: {cause}" if is_told else "")


def test_a_review_of_changes_leaves_no_memory_as_its_advice_may_be_refused() -> None:
    turns = build_turns(("user", "/pr-review 12"), TOOL, ("assistant", REPORT))
    assert [m for m in memories(("user", "/pr-review 12"), ("assistant", REPORT)) if m.record] == []
    assert records(("user", "Please review my changes."), ("assistant", REPORT)) == []
    session = build_session_memory(segment_turns(turns))
    assert session is not None
    assert session.content == "Session: /pr-review 12"


CAUSE = "Root cause: the job takes the lock twice."
FIX = "Fix: `acquire()` is called once, outside of the loop."


@pytest.mark.parametrize(
    "said",
    [
        (("assistant", f"That was the mistake. {CAUSE} {FIX}"),),
        (("assistant", "Is it the lock?"), ("user", f"That was the mistake. {CAUSE} {FIX}")),
        (("assistant", f"That was the mistake.\n\n**{CAUSE[:11]}** {CAUSE[12:]}\n\n{FIX}"),),
        (("assistant", f"## Root cause\nThe job takes the lock twice.\n\n## Fix\n{FIX[5:]}"),),
    ],
)
def test_a_cause_and_its_fix_in_one_message_are_one_record(
    said: tuple[tuple[str, str], ...],
) -> None:
    (record,) = records(("user", "The nightly job hangs."), *said)
    assert record.content.startswith("The nightly job hangs.")
    assert "lock twice" in record.content
    assert "is called once" in record.content
    assert record.kind is Kind.BUG


@pytest.mark.parametrize(
    "remark",
    [
        "I remember we had those `pyupgrade` passes, first for `py3-plus` then `py37-plus`.",
        "Dropping Python 2.6 must have simplified at least the headaches with `bytes` though.",
        "Changed it to always explicitly instantiate a `URL` object from the resolved path.",
        "I saw an old commit of `urls.py` that says we still need to copy the path.",
    ],
)
def test_a_remark_on_what_was_is_no_rule(remark: str) -> None:
    said = (("user", "Why is `URL` slow?"), ("assistant", "It copies its path."), ("user", remark))
    assert [m for m in memories(*said) if m.kind in (Kind.CONVENTION, Kind.TASK)] == []


def test_what_a_user_only_mentions_is_not_told_as_decided() -> None:
    found = records(
        ("user", "The `daterange` function loops forever where `start == stop`, can you see why?"),
        ("assistant", "The comparison fails because `daterange` yields before it checks `stop`."),
        (
            "user",
            "I also noticed that `daterange` always takes `operator.lt` first, for `start` and "
            "`stop` alike. Should `daterange` check `stop` before?",
        ),
        ("assistant", "Yes, `daterange` should check `start == stop` first because both yield."),
    )
    assert found
    assert not any("noticed" in record.content for record in found)


def test_what_was_planned_before_the_first_change_is_told_by_the_report_on_it() -> None:
    turns = build_turns(
        ("user", "The release workflow fails in the new repository. Make it work again."),
        ("assistant", "The checksums in `release.yml` are fine as they are. Shall I move it?"),
        ("user", "yes"),
        ("tool", ""),
        ("assistant", "Moved `release.yml` to `.github/workflows/` and set `dir: ./cli` in it."),
    )
    turns[3] = replace(turns[3], tool="Edit", content="Edit: `release.yml` [ok]")
    (record,) = [m for m in extract_memories(segment_turns(turns)) if m.record]
    assert "checksums" not in record.content
    assert "dir: ./cli" in record.content


def test_what_an_agent_says_on_its_way_is_no_outcome_of_its_work() -> None:
    said = (
        ("user", "`tool run droid` says that there is no such provider."),
        ("assistant", "The `check` command knows `droid`, and `run` has no entry for it."),
        TOOL,
        ("assistant", "Let me look at the registry."),
    )
    assert not records(*said)


def test_a_claim_of_a_reviewer_is_not_told_as_a_fact() -> None:
    (record,) = records(
        ("user", "Got this comment from a reviewer: `parse_date` has no test of bad input."),
        TOOL,
        (
            "assistant",
            "`parse_date` is covered: the issue is not the input, as `test_dates.py` holds five "
            "bad dates. The reviewer overstates the problem.",
        ),
    )
    assert "has no test" not in record.content
    assert "reviewer" not in record.content
    assert "five bad dates" in record.content


def test_a_session_whose_first_request_only_orders_something_is_a_title() -> None:
    fix = ("user", "The nightly export writes rows twice. Why does it repeat them?")
    turns = build_turns(
        ("user", "Take a look at the workflows."),
        TOOL,
        ("assistant", "Fixed `ci.yml`: the cache is found in `cli/`, where `go.sum` is."),
        fix,
        TOOL,
        ("assistant", "Fixed `export/writer.py`: the retry no longer repeats what was written."),
    )
    session = build_session_memory(segment_turns(turns))
    assert session is not None
    assert "\n" not in session.content


@pytest.mark.parametrize(
    ("aside", "is_kept"),
    [
        ("and I now changed it to stop after three", True),
        ("which I measured with ten uploads", True),
        ("and for the limit of the proxy I need your word", False),
        ("and I am tired of its defaults", False),
    ],
)
def test_a_report_of_what_the_agent_did_is_no_chat(aside: str, is_kept: bool) -> None:
    found = records(
        ("user", "Uploads hang when the proxy answers 413. Can you fix `upload_limits`?"),
        TOOL,
        ("assistant", f"The upload hung because `retry_upload` never gave up, {aside}."),
    )
    assert bool(found) is is_kept
