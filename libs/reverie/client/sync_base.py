"""What the client without `await` is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from reverie.client.portal import Portal
from reverie.client.reverie import AsyncReverie

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pydantic import BaseModel

    from reverie.client.calls import Answered, Query

Self = TypeVar("Self", bound="SyncBase")


class SyncBase:
    """A client that awaits, behind a thread that does so."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        tries: int = 4,
        agent: str = "reverie-client",
        ca: Path | str | None = None,
    ) -> None:
        self._reverie = AsyncReverie(url, key, timeout=timeout, tries=tries, agent=agent, ca=ca)
        self._portal = Portal()

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
        if not self._portal.closed:
            self._portal.wait(self._reverie.close())
            self._portal.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: BaseModel | Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """Any call of the REST interface. Raises `Refused` on a status of 400 or above."""
        return self._portal.wait(
            self._reverie.call(method, path, query=query, body=body, headers=headers)
        )
