"""What holds nothing that can be seen."""

from __future__ import annotations

import pytest

from reverie.domain.blank import is_blank


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b\u2060\ufeff", "\u2800", "\u3164\ufe0f", "\u202e"]
)
def test_what_nobody_sees_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize(
    "text", ["a", "\u200bа\u200b", "👩\u200d🚀", "ก็", ".", "\u202eabc", "❤\ufe0f"]
)
def test_text_that_holds_something_unseen_is_text(text: str) -> None:
    assert not is_blank(text)
