"""The typed Python client of a gateway: `Reverie`, and `AsyncReverie` for code that awaits.

Importing it loads neither the HTTP client nor the models of the bodies: the first call does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reverie.client.async_client import AsyncReverie, AsyncSession
    from reverie.client.errors import ApiError
    from reverie.client.streams import StreamEvent
    from reverie.client.sync_client import Reverie, Session
    from reverie.client.transport import ApiResponse, HttpTransport
    from reverie.domain.core.errors import Unavailable

__all__ = [
    "ApiError",
    "ApiResponse",
    "AsyncReverie",
    "AsyncSession",
    "HttpTransport",
    "Reverie",
    "Session",
    "StreamEvent",
    "Unavailable",
]

_MODULES = {
    "ApiResponse": "reverie.client.transport",
    "AsyncReverie": "reverie.client.async_client",
    "AsyncSession": "reverie.client.async_client",
    "HttpTransport": "reverie.client.transport",
    "StreamEvent": "reverie.client.streams",
    "ApiError": "reverie.client.errors",
    "Reverie": "reverie.client.sync_client",
    "Session": "reverie.client.sync_client",
    "Unavailable": "reverie.domain.core.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
