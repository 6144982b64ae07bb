"""Texts of others, given to a language model as data: numbered, labelled, and unable to end."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TAG = re.compile(r"<(?=\s*/?\s*(?:item|data)\b)", re.I)


def fenced(items: Iterable[tuple[str, str]]) -> str:
    """Each (label, text) as a numbered item, from 1; all of them one block of data."""
    parts = [
        f'<item n="{n}" from="{_label(label)}">\n{_TAG.sub("‹", text)}\n</item>'
        for n, (label, text) in enumerate(items, 1)
    ]
    return "\n".join(("<data>", *parts, "</data>"))


def _label(text: str) -> str:
    return " ".join(re.sub(r"[^\w./-]", " ", text[:60]).split())
