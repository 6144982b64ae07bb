"""Credentials in a text that is streamed in pieces are redacted as in the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR
from reverie_services.engine.events import DeltaRedactor


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60))
def test_a_text_streamed_in_pieces_is_redacted_as_a_whole(sizes: list[int]) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    text = f"first line\nthe token is {token} and\npassword: hunter2hunter2\nthe end"
    redactor, said, place = DeltaRedactor(CREDENTIAL_REDACTOR), "", 0
    for size in sizes:
        said += redactor.add(text[place : place + size])
        place += size
    said += redactor.add(text[place:], is_last=True)
    assert token not in said
    assert "hunter2hunter2" not in said
    assert said.startswith("first line\nthe token is ")
    assert said.endswith("the end")


_LINES = "\n".join("MIIEow" + "qZ7xK1vB9mT4" * 4 + str(line) for line in range(10, 30))


_PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{_LINES}\n-----END RSA PRIVATE KEY-----"


_NUMBER = "Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7GQ5sLKMgvf"


_TOKEN = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiJ" + "x7Kq2vBn9T" * 60 + "." + "Zr4mWq8Lp2" * 5


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        (_PEM, _LINES[:40]),
        (_PEM.replace("\n", "\\n"), _LINES[:40]),
        (f'{{"kty": "RSA",\n "d": "{_NUMBER}"}}', _NUMBER),
        (f'{{"d": "{_NUMBER}",\n "kty": "RSA"}}', _NUMBER),
        ("password:\n  hunter2hunter2", "hunter2hunter2"),
        (f"token {_TOKEN}", _TOKEN[40:80]),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_a_streamed_credential_of_several_lines_is_redacted(
    secret: str, shown: str, size: int
) -> None:
    text = "before it\n" * 300 + f"here: {secret}\nand after it " + "all is well. " * 400
    redactor = DeltaRedactor(CREDENTIAL_REDACTOR)
    pieces = [redactor.add(text[at : at + size]) for at in range(0, len(text), size)]
    said = "".join(pieces) + redactor.add("", is_last=True)
    assert shown in text
    assert shown not in said
    assert said == CREDENTIAL_REDACTOR.redact(text).text


def test_a_private_key_that_is_cut_off_is_redacted() -> None:
    redactor = DeltaRedactor(CREDENTIAL_REDACTOR)
    said = [redactor.add(word + "\n") for word in _PEM.split("\n")[:-4]]
    assert "".join(said) + redactor.add("", is_last=True) == "[REDACTED_PRIVATE_KEY]\n"
