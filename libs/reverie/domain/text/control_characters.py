"""Removes the characters that change what a terminal shows or does. Hooks wait for its import."""

from __future__ import annotations

_C0 = [code for code in range(0x20) if chr(code) not in "\n\t"]
_DELETE_AND_C1 = range(0x7F, 0xA0)
_BIDI_OVERRIDES = [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_LINE_SEPARATORS = [0x2028, 0x2029]
_REMOVED = dict.fromkeys([*_C0, *_DELETE_AND_C1, *_BIDI_OVERRIDES, *_LINE_SEPARATORS])


def strip_control_characters(text: str) -> str:
    """The text without escape sequences' lead-ins, other control characters and bidi overrides.

    Line feeds and tabs stay. The printable rest of a sequence stays too, so nothing is hidden.
    """
    return text.translate(_REMOVED)
