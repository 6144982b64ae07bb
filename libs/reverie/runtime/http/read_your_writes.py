"""Replication positions in headers, so that replica reads see a client's own writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

import structlog

from reverie.domain.core.errors import ReverieError

POSITION_HEADER: Final = "Reverie-Position"

log = structlog.get_logger()

PositionReader = Callable[[], Awaitable[str]]
ReadBarrier = Callable[[Mapping[str, str]], AbstractContextManager[None]]
PositionRecorder = Callable[[Mapping[str, str], str], None]


@dataclass(frozen=True)
class PositionHooks:
    """What a service does with positions where reads may go to a replica.

    `current_position`: where the log ends now. `read_barrier`: around a read, given the headers
    of its request; raises
    `Invalid` where they name a position that is none. `record_position`: takes the headers of a
    write that was passed on, and the position that it was answered with.
    """

    current_position: PositionReader | None = None
    read_barrier: ReadBarrier | None = None
    record_position: PositionRecorder | None = None

    async def response_headers(self, method: str, status: int) -> dict[str, str]:
        """Those of the answer to a write that was carried out."""
        if self.current_position is None or method == "GET" or status >= 400:
            return {}
        try:
            return {POSITION_HEADER: await self.current_position()}
        except ReverieError as error:
            # The write stands, whatever becomes of the next question.
            log.warning("log_position_unknown", reason=str(error))
            return {}

    def wait_for_position(self, headers: Mapping[str, str]) -> AbstractContextManager[None]:
        """Within it, reads see what the headers name."""
        return self.read_barrier(headers) if self.read_barrier is not None else nullcontext()

    def record_proxied(
        self, request_headers: Mapping[str, str], reply_headers: Mapping[str, str]
    ) -> None:
        """Takes note of what the answer to a call that was passed on tells."""
        if self.record_position is not None and POSITION_HEADER in reply_headers:
            self.record_position(request_headers, reply_headers[POSITION_HEADER])
