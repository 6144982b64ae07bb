"""The typed Python client of a gateway: `Reverie`, and `AsyncReverie` for code that awaits.

Importing it loads neither the HTTP client nor the models of the bodies: the first call does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reverie.client.calls import Answered, Caller
    from reverie.client.errors import Refused
    from reverie.client.events import Happened
    from reverie.client.reverie import AsyncReverie
    from reverie.client.session import AsyncSession
    from reverie.client.sync import Reverie, Session
    from reverie.domain.errors import Unavailable

__all__ = [
    "Answered",
    "AsyncReverie",
    "AsyncSession",
    "Caller",
    "Happened",
    "Refused",
    "Reverie",
    "Session",
    "Unavailable",
]

_IN = {
    "Answered": "reverie.client.calls",
    "AsyncReverie": "reverie.client.reverie",
    "AsyncSession": "reverie.client.session",
    "Caller": "reverie.client.calls",
    "Happened": "reverie.client.events",
    "Refused": "reverie.client.errors",
    "Reverie": "reverie.client.sync",
    "Session": "reverie.client.sync",
    "Unavailable": "reverie.domain.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_IN[name]), name)
