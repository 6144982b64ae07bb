"""The result of a check of `reverie doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """The result of a check, with a remedy if something is wrong."""

    level: Literal["ok", "warning", "error"]
    message: str
    remedy: str = ""


def ok(message: str) -> Finding:
    """Nothing is wrong."""
    return Finding("ok", message)


def warning(message: str, remedy: str) -> Finding:
    """Reverie works, but something is wrong."""
    return Finding("warning", message, remedy)


def error(message: str, remedy: str = "") -> Finding:
    """Reverie does not work."""
    return Finding("error", message, remedy)
