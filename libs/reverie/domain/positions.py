"""Places in the log of a database, as Postgres writes them: `0/16B3748`."""

from __future__ import annotations

import re

_POSITION = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def parse_position(text: str) -> int | None:
    """The position as a number of bytes; None where the text is none."""
    found = _POSITION.fullmatch(text.strip())
    return (int(found[1], 16) << 32) + int(found[2], 16) if found else None


def further(one: str | None, other: str | None) -> str | None:
    """The later of two positions; what is none counts as the beginning."""
    return max(one, other, key=lambda text: parse_position(text or "") or 0)
