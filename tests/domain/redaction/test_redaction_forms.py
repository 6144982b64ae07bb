"""Recall and precision of redaction on forms of credentials."""

from __future__ import annotations

import pytest

from tests.domain.redaction.form_sets import FORM_SETS, FormText, replaced_spans, score_forms


@pytest.mark.parametrize("name", FORM_SETS)
def test_recall_and_precision_hold_on_forms(name: str) -> None:
    result = score_forms(name)
    assert result.recall >= 0.95, [text.form for text in result.missed]
    assert result.precision >= 0.97, result.wrong


def test_a_part_of_a_credential_counts_as_missed() -> None:
    text = FormText("", "pw: hunter27x", ("hunter27x",), "pw: \n")
    assert text.remains("pw: [REDACTED_PASSWORD]7x") == []
    assert text.remains("pw: [REDACTED_PASSWORD]er27x") == ["hunter27x"]
    assert replaced_spans(text.text, "pw: [REDACTED_PASSWORD]7x") == [(4, 11)]
