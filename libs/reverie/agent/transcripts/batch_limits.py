"""Limits on the number and size of turns in one request."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_BATCH_TURNS = 200
MAX_BATCH_BYTES = 600_000
"""Limit for text encoded as JSON: many scripts need six bytes per character."""


def encoded_size(turn: dict[str, Any]) -> int:
    """Returns the bytes that a turn's text takes in a call."""
    return len(json.dumps(turn["content"]))
