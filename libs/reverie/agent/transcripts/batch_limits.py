"""Limits on the number and size of turns in one request."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_BATCH_TURNS = 200
MAX_BATCH_BYTES = 600_000
"""Of what is said, as JSON writes it: six to a character of many scripts."""


def encoded_size(turn: dict[str, Any]) -> int:
    """The bytes that what a turn says takes of a call."""
    return len(json.dumps(turn["content"]))
