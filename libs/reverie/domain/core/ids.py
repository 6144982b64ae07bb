"""Identifiers: new UUIDv7 ids, short ids for people, and parsing of id fragments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

SHORT_LENGTH = 8
_FRAGMENT = re.compile(r"[0-9a-f]{8,31}")


def new_id() -> UUID:
    """A new UUIDv7, which sorts by its time of creation in milliseconds."""
    # Clients only read ids: they do without this package.
    from uuid_utils.compat import uuid7

    return uuid7()


def short_id(full: UUID) -> str:
    """The last eight hex digits, which are random; the first ones are the time."""
    return full.hex[-SHORT_LENGTH:]


@dataclass(frozen=True)
class IdFragment:
    """The end or the beginning of an id. As a beginning, it matches ids from `low` to `high`."""

    digits: str
    low: UUID
    high: UUID

    def matches(self, full: UUID) -> bool:
        """Whether the id begins or ends with the fragment."""
        return self.low <= full <= self.high or full.hex.endswith(self.digits)


def parse_id_fragment(text: str) -> IdFragment | None:
    """The fragment of an id of at least eight hex digits; None for other texts."""
    digits = text.strip().replace("-", "").lower()
    if _FRAGMENT.fullmatch(digits) is None:
        return None
    return IdFragment(digits, UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f")))
