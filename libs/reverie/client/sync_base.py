"""The base class of the synchronous client: the asynchronous client behind a portal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from reverie.client.async_client import AsyncReverie
from reverie.client.portal import BlockingPortal

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pydantic import BaseModel

    from reverie.client.transport import ApiResponse, Query

Self = TypeVar("Self", bound="SyncClientBase")


class SyncClientBase:
    """A client that awaits, behind a thread that does so."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        max_attempts: int = 4,
        agent: str = "reverie-client",
        ca: Path | str | None = None,
    ) -> None:
        self._reverie = AsyncReverie(
            url, key, timeout=timeout, max_attempts=max_attempts, agent=agent, ca=ca
        )
        self._portal = BlockingPortal()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives back the connections and the thread; a second time does nothing."""
        if not self._portal.is_closed:
            self._portal.run(self._reverie.close())
            self._portal.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: BaseModel | Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiResponse:
        """Any call of the REST interface. Raises `Refused` on a status of 400 or above."""
        return self._portal.run(
            self._reverie.call(method, path, query=query, body=body, headers=headers)
        )
