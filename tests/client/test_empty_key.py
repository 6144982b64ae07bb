"""A client without a key says so, and not what its HTTP library thinks of the header."""

from __future__ import annotations

import pytest

from reverie.client import Reverie
from reverie.domain.core.errors import InvalidInput


@pytest.mark.parametrize("key", ["", " \n"])
def test_an_empty_key_is_refused_before_a_call(key: str) -> None:
    with pytest.raises(InvalidInput, match="key: is empty"):
        Reverie("http://127.0.0.1:9", key)
