"""Identifiers: UUIDv7 made here, shown to people by their last eight digits."""

from __future__ import annotations

import re
from uuid import UUID

from uuid_utils.compat import uuid7

SHORT_LENGTH = 8
_SHORT = re.compile(r"[0-9a-f]{8}")


def new_id() -> UUID:
    """A UUIDv7: sorts by the millisecond it was made in."""
    return uuid7()


def short_id(full: UUID) -> str:
    """The last eight hex digits: random, unlike the first, which are the time."""
    return full.hex[-SHORT_LENGTH:]


def is_short_id(text: str) -> bool:
    """Whether `text` has the form that `short_id` gives."""
    return _SHORT.fullmatch(text) is not None
