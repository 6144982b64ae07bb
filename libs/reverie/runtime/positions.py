"""Where a write stands in the log of the database, told in its answer and named by later reads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

import structlog

from reverie.domain.errors import ReverieError

POSITION: Final = "Reverie-Position"

log = structlog.get_logger()

Tell = Callable[[], Awaitable[str]]
Heed = Callable[[Mapping[str, str]], AbstractContextManager[None]]
Note = Callable[[Mapping[str, str], str], None]


@dataclass(frozen=True)
class Positions:
    """What a service does with positions where reads may go to a replica.

    `tell`: where the log ends now. `heed`: around a read, given the headers of its request; raises
    `Invalid` where they name a position that is none. `note`: takes the headers of a write that was
    passed on, and the position that it was answered with.
    """

    tell: Tell | None = None
    heed: Heed | None = None
    note: Note | None = None

    async def headers(self, method: str, status: int) -> dict[str, str]:
        """Those of the answer to a write that was carried out."""
        if self.tell is None or method == "GET" or status >= 400:
            return {}
        try:
            return {POSITION: await self.tell()}
        except ReverieError as error:
            # The write stands, whatever becomes of the next question.
            log.warning("position_untold", reason=str(error))
            return {}

    def around(self, headers: Mapping[str, str]) -> AbstractContextManager[None]:
        """Within it, reads see what the headers name."""
        return self.heed(headers) if self.heed is not None else nullcontext()

    def passed_on(self, asked: Mapping[str, str], answered: Mapping[str, str]) -> None:
        """Takes note of what the answer to a call that was passed on tells."""
        if self.note is not None and POSITION in answered:
            self.note(asked, answered[POSITION])
