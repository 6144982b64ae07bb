"""State that was told as memory: counters, blobs of JSON, keys written again and again."""

from __future__ import annotations

import json
import re

USE_VAULT = "this is state rather than memory: keep it in the vault (PUT /v1/vault/{key})"

_NAMED = r"[\w.\-/]{1,60}\s?[=:]\s{0,4}"
_COUNTED = r"[\w \-]{0,40}\b(?:count|counter|total)\b[\w \-]{0,20}[=:]?\s?"
_COUNTER = re.compile(rf"(?:{_NAMED}|{_COUNTED})?[+-]?\d[\d_.,]{{0,30}}\s?%?", re.IGNORECASE)


def state_hints(content: str) -> tuple[str, ...]:
    """The advice to use the vault, where a content is state."""
    return (USE_VAULT,) if is_state(content) else ()


def is_state(content: str) -> bool:
    """Whether a content is a number, with a name or without, or a JSON object or array."""
    text = content.strip()
    return _COUNTER.fullmatch(text) is not None or _is_blob(text)


def _is_blob(text: str) -> bool:
    if text[:1] + text[-1:] not in {"{}", "[]"}:
        return False
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
