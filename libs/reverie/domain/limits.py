"""What a key, and a tenant with all of its keys, may do in a minute and in a day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

REQUESTS_A_MINUTE = "requests_a_minute"
REQUESTS_A_DAY = "requests_a_day"
MEMORIES_A_DAY = "memories_a_day"
BYTES_A_DAY = "bytes_a_day"
LLM_TOKENS_A_DAY = "llm_tokens_a_day"
TENANT_WIDE = UUID(int=0)
"""Holder of what all keys of a tenant use together."""


@dataclass(frozen=True)
class Limits:
    """Each a number, None for no limit. Days begin at midnight (UTC).

    `bytes_a_day`: of the bodies of writes. `llm_tokens_a_day`: sent and received by a language
    model on behalf of a key's own calls.
    """

    requests_a_minute: int | None = None
    requests_a_day: int | None = None
    memories_a_day: int | None = None
    bytes_a_day: int | None = None
    llm_tokens_a_day: int | None = None

    def of(self, name: str) -> int | None:
        """The limit of that name."""
        found: int | None = getattr(self, name)
        return found


NONE = Limits()
NAMES = tuple(one.name for one in fields(Limits))


def least(*given: Mapping[str, Any] | Limits) -> Limits:
    """The strictest of several: each limit is the least that is given; 0 and above count."""
    dicts = [vars(one) if isinstance(one, Limits) else one for one in given]
    named = {name: [one[name] for one in dicts if one.get(name) is not None] for name in NAMES}
    return Limits(**{name: min(values) for name, values in named.items() if values})


def holder_of(key_id: str) -> UUID:
    """The number under which a key's use is counted: its own, where it has one."""
    try:
        return UUID(key_id)
    except ValueError:
        return uuid5(NAMESPACE_URL, f"key:{key_id}")
