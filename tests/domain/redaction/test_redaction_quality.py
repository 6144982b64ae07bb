"""Precision and recall of redaction on labelled sets of texts and of forms.

The credentials are made when the modules load, from parts.
"""

from __future__ import annotations

import re

import pytest

from reverie.domain.redaction.redactor import redact
from tests.domain.redaction.form_sets import (
    FORM_SETS,
    FORMS,
    FormText,
    form_texts,
    replaced_spans,
    score_forms,
)
from tests.domain.redaction.template_sets import FOLDER, HELD_OUT, MADE, THIRD, LabelledTexts


@pytest.mark.parametrize(
    ("texts", "least", "least_precision"),
    [(MADE, 120, 0.9), (HELD_OUT, 150, 0.95), (THIRD, 200, 0.95)],
    ids=["made with the rules", "held out", "third"],
)
def test_recall_and_precision_hold_on_a_labelled_set(
    texts: LabelledTexts, least: int, least_precision: float
) -> None:
    missed, wrong, precision, recall = texts.measure()
    assert min(len(texts.found), len(texts.kept)) >= least
    assert recall >= 0.95, missed
    assert precision >= least_precision, wrong


@pytest.mark.parametrize("name", FORM_SETS)
def test_recall_and_precision_hold_on_forms(name: str) -> None:
    result = score_forms(name)
    assert result.recall >= 0.95, [text.form for text in result.missed]
    assert result.precision >= 0.97, result.wrong


def test_what_was_once_missed_or_disturbed_is_found_whole_and_no_more_than_that() -> None:
    result = score_forms("l")
    assert (result.missed, result.wrong) == ([], [])
    for text in form_texts("credentials_l"):
        left = len(redact(text.text).text)
        assert left > len(text.text) - sum(map(len, text.secrets)), text.form


def test_a_part_of_a_credential_counts_as_missed() -> None:
    text = FormText("", "pw: hunter27x", ("hunter27x",), "pw: \n")
    assert text.remains("pw: [REDACTED_PASSWORD]7x") == []
    assert text.remains("pw: [REDACTED_PASSWORD]er27x") == ["hunter27x"]
    assert replaced_spans(text.text, "pw: [REDACTED_PASSWORD]7x") == [(4, 11)]


def test_no_template_file_contains_a_credential() -> None:
    for path in (*FOLDER.glob("*.txt"), *FORMS.glob("*.txt")):
        # Runs that look made.
        assert re.findall(r"[A-Za-z0-9+/]{40,}", path.read_text("utf-8")) == [], path


def test_redacting_twice_changes_nothing_more() -> None:
    of_forms = [form.text for form in form_texts("credentials_l")]
    for text in [*of_forms, *(text for made in (MADE, HELD_OUT, THIRD) for text, _ in made.found)]:
        once = redact(text)
        twice = redact(once.text)
        assert (twice.text, twice.count) == (once.text, 0), text
