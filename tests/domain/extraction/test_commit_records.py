"""Which messages of commits and merged requests make a memory, and what of them it holds."""

from __future__ import annotations

import pytest

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.commit_records import extract_commit_record


@pytest.mark.parametrize(
    ("subject", "body"),
    [
        ("Add first function", "Transplant from https://example.org/first , hereby donated. :)"),
        ("Add subdict function", "The concept was stolen from @someone"),
        ("Test and fix for #348 (#349)", "* test and fix for #348\n\n* quick fix for py27 ci"),
        ("Fix missing names (#356)", "Missed in https://example.org/commit/17c64d01"),
        ("Change 'fundaments' to 'fundamentals'", "In case this wasn't intentional! 👍"),
        ("Fix minor docstring formatting issues", "* Annotate `bool` reference\n* Remove ticks"),
        ("update the tests to be compatible with the new runner", ""),
        ("iterutils.remap: probably shouldn't encourage this, but there are wild times", ""),
        ("always bugged me that priority queues was not capitalized", ""),
        ("perf: simplify retry", "Closes #12\nSigned-off-by: A <a@example.org>"),
        ("docs: rename the page of the as-built state to another name", ""),
        ("bump version to 26.0.1dev because of the release", ""),
        ("Fix typo in README", ""),
        ("Merge branch 'main' into feature/x", ""),
    ],
)
def test_a_message_that_explains_nothing_makes_no_memory(subject: str, body: str) -> None:
    assert extract_commit_record(subject, body) is None


@pytest.mark.parametrize(
    ("subject", "body", "kind"),
    [
        ("Fix Table.to_text() sizing",
         "Table.to_text now measures column contents instead of row length.", Kind.BUG),
        ("revert to tox==4.8.0 as 4.9 seems to have quietly dropped 3.7 support", "",
         Kind.DECISION),
        ("Don't refresh expired tokens while blocking on startup of `run`", "", Kind.CONTEXT),
        ("Rename range2list() & list2range() to parse_int_list() & format_int_list()", "",
         Kind.DECISION),
        ('Revert "Use wheels"', f"This reverts commit {'a' * 40}.", Kind.DECISION),
        ("缓存改为按用户区分,因为共享键导致数据泄漏", "", Kind.DECISION),
    ],
)  # fmt: skip
def test_a_reason_a_rule_or_a_behaviour_makes_a_memory(subject: str, body: str, kind: Kind) -> None:
    record = extract_commit_record(subject, body)
    assert record is not None
    assert (record.kind, record.content) == (kind, f"{subject}\n{body}".strip())


def test_the_record_holds_no_work_log_links_or_trailers() -> None:
    body = (
        "* fix tests\n\n* keep MAX_ATTEMPTS at 7, because an 8th trips the upstream limiter\n\n"
        "* https://example.org/build/12\n\n---------\n\nCo-authored-by: A <a@example.org>"
    )
    record = extract_commit_record("fix: cap the retries (#12)", body)
    assert record is not None
    assert record.content == (
        "fix: cap the retries (#12)\n"
        "* keep MAX_ATTEMPTS at 7, because an 8th trips the upstream limiter"
    )


def test_the_boilerplate_of_a_request_template_is_left_out() -> None:
    body = (
        "<!-- Thank you for\nyour request -->\n## Why\n\nThe importer strips leading zeros, so"
        " digits are written as text.\n\n## Screenshots\n\n<!-- optional -->\n\n## Checklist\n"
        "- [x] tests\n- [ ] docs\n"
    )
    record = extract_commit_record("Write digits as text (#7)", body)
    assert record is not None
    assert record.content == (
        "Write digits as text (#7)\n## Why\n\nThe importer strips leading zeros, so digits are"
        " written as text."
    )
    empty = "<!-- say why -->\n## Why\n\n## Checklist\n- [ ] tests"
    assert extract_commit_record("Write digits as text", empty) is None
