"""How much of a conversation one call hands over."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_TURNS = 200
MOST_BYTES = 600_000
"""Of what is said, as JSON writes it: six to a character of many scripts."""


def weight(turn: dict[str, Any]) -> int:
    """The bytes that what a turn says takes of a call."""
    return len(json.dumps(turn["content"]))
