"""The messages of errors."""

from __future__ import annotations

import gc
from dataclasses import dataclass

from reverie.domain.core.errors import ReverieError


def test_a_message_that_is_wrapped_in_the_source_is_printed_whole() -> None:
    @dataclass(eq=False)
    class WrappedError(ReverieError):
        """give a scope, or a session, or a
        {field} of its own

        This is for readers of the source.
        """

        field: str

    assert str(WrappedError("key")) == "give a scope, or a session, or a key of its own"
    del WrappedError
    gc.collect()  # the reference of errors lists the subclasses that exist
