"""Finds tool calls that repeat, alone or in blocks, in a turn and across the turns of a chain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

MAX_BLOCK = 4
"""The longest block of calls that is compared."""
REPEATS = 3
"""How often in a row a block must occur."""


def sign_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """A short name for a call: equal for equal arguments, whatever their order."""
    text = json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
    return f"{tool}:{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}"


def find_repetition(calls: Sequence[str]) -> Sequence[str] | None:
    """The block that the calls end with `REPEATS` times in a row; None if there is none."""
    for length in range(1, MAX_BLOCK + 1):
        if len(calls) < length * REPEATS:
            return None
        block = list(calls[-length:])
        if list(calls[-length * REPEATS :]) == block * REPEATS:
            return block
    return None
