"""The wording of records: no frames of talk, no repetition, outcomes of work, proposals as such."""

from __future__ import annotations

from uuid import UUID

import pytest

from reverie.domain.extraction.conversation.topic_segmentation import segment_turns
from reverie.domain.extraction.records.redundancy import drop_repeated_sentences
from reverie.domain.extraction.rule_extractor import ExtractedMemory, extract_memories
from reverie.domain.extraction.wording.proofreading import (
    drop_frame,
    drop_label,
    restate_proposal,
)
from reverie.domain.text.turns import TurnText
from tests.domain.extraction.test_decision_records import TOOL
from tests.support.extraction import START, build_turns, records

EDIT = TurnText(UUID(int=2), 1, "tool", "Edit: `orders/export.py` [ok]", START, "Edit")


def records_of_work(said: str, report: str) -> list[ExtractedMemory]:
    """The records of a request that a tool wrote a file for."""
    request, _, answer = build_turns(("user", said), TOOL, ("assistant", report))
    made = extract_memories(segment_turns([request, EDIT, answer]))
    return [memory for memory in made if memory.record]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Noticed that `Ledger.close` never releases its lock.",
            "`Ledger.close` never releases its lock.",
        ),
        ("Changing the subject a bit, why is `load()` lazy?", "Why is `load()` lazy?"),
        (
            "When merging, does `load()` keep the order?",
            "When merging, does `load()` keep the order?",
        ),
        (
            "Naming is slightly awkward - could be `closed_at`.",
            "Naming is slightly awkward - could be `closed_at`.",
        ),
    ],
)
def test_how_somebody_came_upon_a_subject_is_not_told(said: str, told: str) -> None:
    assert drop_frame(said) == told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "When nothing is left, should I write an empty file?",
            "When nothing is left, write an empty file.",
        ),
        (
            "That explains the gap... simpler idea: why not sort all rows by their date?",
            "Sort all rows by their date.",
        ),
        ("I'll sort all rows by their date.", "Sort all rows by their date."),
        ("one table per tenant", "one table per tenant"),
    ],
)
def test_a_refused_proposal_is_told_without_the_thoughts_before_it(said: str, told: str) -> None:
    assert restate_proposal(said) == told


def test_a_summing_up_is_told_without_the_word_that_announces_it() -> None:
    assert drop_label("Settled then: exports keep their order.") == "Exports keep their order."
    assert drop_label("Recap of export(): rows keep their order.").startswith("Recap of export()")


def test_a_sentence_without_a_new_word_or_figure_is_told_once() -> None:
    rule = "Exports keep the order of the rows and drop rows without a date."
    again = "Drop rows without a date. At most 500 rows go into an export."
    assert drop_repeated_sentences([rule, again]) == [rule, "At most 500 rows go into an export."]
    assert (
        drop_repeated_sentences(["Cache and queue.", "The cache is Redis. The queue is NATS."])[0]
        == ""
    )


FAILING = "The export of orders writes rows without a date, and the import fails on them."
CAUSE = "`import_rows` reads the date of each row because the ledger is keyed by it."


def test_a_record_of_work_tells_what_was_changed() -> None:
    (record,) = records_of_work(FAILING, f"Added 3 test cases of such an import.\n\n{CAUSE}")
    assert "Added 3 test cases of such an import" in record.content


def test_work_whose_report_tells_no_change_leaves_no_record() -> None:
    assert records(("user", FAILING), TOOL, ("assistant", CAUSE))
    assert not records_of_work(FAILING, CAUSE)


def test_a_request_after_an_interrupted_one_has_its_own_record() -> None:
    (record,) = records(
        ("user", "We do not want the whole cache folder ignored by the repository settings."),
        ("user", "Log each malformed line that the parser of sessions skips in `parse_session`."),
        TOOL,
        (
            "assistant",
            "Added a debug log to `parse_session` for malformed lines because they vanish.",
        ),
    )
    assert "cache folder" not in record.content


def test_what_a_program_printed_is_no_part_of_the_problem() -> None:
    printed = "[01/02/26 9:57 ~/shop] shop watch\n\n👀 Watching for orders\n   Press Ctrl+C to stop"
    said = "The word orders is wrong here when a single order is watched."
    report = "Changed the message of `watch` to the singular where one order is watched."
    (record,) = records(("user", f"{printed}\n\n{said}"), TOOL, ("assistant", report))
    assert record.record is not None
    assert record.record["problem"] == said


def test_an_answer_that_asks_back_is_not_the_last_word() -> None:
    asked = ("user", "Why does `load_orders()` of `orders.py` skip lines that hold only blanks?")
    answer = "It skips empty lines because the export of the ledger ends with one."
    assert records(asked, ("assistant", answer))
    assert not records(asked, ("assistant", f"{answer} Which lines do you see skipped?"))


@pytest.mark.parametrize(
    ("told", "again", "refused"),
    [
        (
            "The flags that count as set are exactly 'true' and 'on', without folding of case.",
            "Not just 'true' - we also accept 'on'.",
            "",
        ),
        (
            "The map is '#' -> 'num' and '@' -> 'at', as the tags of the ledger are.",
            "Not 'hash' — we settled on the tags of the ledger. '#' becomes 'num'.",
            "Write '#' as 'hash'.",
        ),
        (
            "`close_ledger` rounds half a cent down toward zero, as the ledger does.",
            "Half cents are rounded down in the ledger.",
            "",
        ),
        (
            "7 attempts take 12.7 s in all.",
            "So the whole delay adds up to 12.7 s where a client makes 7 attempts.",
            "",
        ),
    ],
)
def test_a_rule_that_is_told_in_other_words_is_told_once(
    told: str, again: str, refused: str
) -> None:
    assert drop_repeated_sentences([told, again], refused) == [told, ""]


def test_what_a_repetition_denies_stays() -> None:
    told = "Queued jobs keep their order, except idempotent jobs whose deadline is in the window."
    denied = "Idempotent jobs whose deadline passed are not queued."
    assert drop_repeated_sentences([told, denied]) == [told, denied]


def test_what_was_decided_in_the_words_of_what_was_refused_stays() -> None:
    decided = "Retry 5 times after 2 seconds in `sync_ledger`."
    assert drop_repeated_sentences(
        [decided], "Retry 2 times after 5 seconds in `sync_ledger`."
    ) == [decided]


def test_stars_in_quotes_and_names_between_underscores_are_no_emphasis() -> None:
    rule = (
        "Final rule: a key of `redact` is masked where it ends with `token`, its value becomes "
        "'***', `card_number` keeps its last four as '***1234', and __slots__ is never masked."
    )
    (record,) = records(("user", "Secrets stand in our logs. Mask them?"), ("assistant", rule))
    assert "'***', `card_number` keeps its last four as '***1234', and __slots__" in record.content
