"""Forms that bring files: what is read of them, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict
from yarl import URL

from reverie.domain.core.errors import MalformedInput, PayloadTooLarge
from reverie.runtime.http.exchange import IncomingRequest, iterate_once
from reverie_services.console.requests import FORM_LIMIT
from reverie_services.console.uploads import FormFile, read_upload

LIMIT = 1_000
FORM = "multipart/form-data; boundary=edge"
EDGE = b"--edge"
NAMES = st.text(
    st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters='"\\'), max_size=255
)


def _part(disposition: str, data: bytes) -> bytes:
    head = f"Content-Disposition: form-data; {disposition}\r\nContent-Type: image/png\r\n\r\n"
    return EDGE + b"\r\n" + head.encode() + data + b"\r\n"


async def _read(
    body: bytes, content_type: str = FORM
) -> tuple[list[tuple[str, str]], list[FormFile]]:
    headers = CIMultiDict({"Content-Type": content_type})
    request = IncomingRequest("POST", URL("/"), headers, iterate_once(body), len(body))
    fields, files = await read_upload(request, LIMIT)
    return list(fields.items()), files


@given(st.lists(st.tuples(NAMES, st.binary(max_size=40)), max_size=4), st.text(max_size=20))
@example([(" ", b""), (" a ", b"a")], "")
async def test_files_are_read_byte_by_byte(files: list[FormFile], text: str) -> None:
    said = text.encode(errors="replace")
    parts = [_part(f'name="f"; filename="{name}"', data) for name, data in files]
    body = _part('name="text"', said) + b"".join(parts) + EDGE + b"--\r\n"
    fields, found = await _read(body)
    assert fields == [("text", said.decode())]
    # A browser sends a field without a file as one without a name and bytes.
    assert found == [(name, data) for name, data in files if name or data]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", FORM),
        (EDGE, FORM),
        (_part('name="text"', b"cut off"), FORM),
        (EDGE + b"\r\n\r\nno header\r\n" + EDGE + b"--", FORM),
        (_part('name="text"', b"\xff") + EDGE + b"--", FORM),
        (_part('name="text"', b"a") * 300 + EDGE + b"--", FORM),
        (_part('name="text"', b"a") + EDGE + b"--", "multipart/form-data"),
        (_part('name="text"' + ";" * 5_000, b"a") + EDGE + b"--", FORM),
    ],
)
async def test_what_is_no_form_is_refused(body: bytes, content_type: str) -> None:
    with pytest.raises(MalformedInput):
        await _read(body, content_type)


async def test_a_form_that_is_too_large_names_the_setting() -> None:
    with pytest.raises(PayloadTooLarge, match="large_body_limit"):
        await _read(b"x" * (LIMIT + FORM_LIMIT + 1))
