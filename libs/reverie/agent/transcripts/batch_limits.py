"""Limits on the lines of a transcript, and on the turns in one request."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_LINE_BYTES = 16_000_000
"""A longer line of a transcript is not read."""
MAX_BATCH_TURNS = 200
MAX_BATCH_BYTES = 600_000
"""Limit for text encoded as JSON: many scripts need six bytes per character."""


def encoded_size(turn: dict[str, Any]) -> int:
    """Returns the bytes that a turn's text takes in a call."""
    return len(json.dumps(turn["content"]))
