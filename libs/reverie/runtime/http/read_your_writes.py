"""Replication positions in headers, so that replica reads see a client's own writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import structlog

from reverie.contracts.headers import POSITION_HEADER
from reverie.domain.core.errors import ReverieError

log = structlog.get_logger()

PositionReader = Callable[[], Awaitable[str]]
ReadBarrier = Callable[[Mapping[str, str]], AbstractContextManager[None]]
PositionRecorder = Callable[[Mapping[str, str], str], None]


@dataclass(frozen=True)
class PositionHooks:
    """The hooks of a service whose reads may go to a replica.

    `current_position`: returns the end of the log. `read_barrier`: wraps a read, given the headers
    of its request; raises `InvalidInput` if they name a malformed position. `record_position`:
    receives the headers of a forwarded write, and the position in its answer.
    """

    current_position: PositionReader | None = None
    read_barrier: ReadBarrier | None = None
    record_position: PositionRecorder | None = None

    async def response_headers(self, method: str, status: int) -> dict[str, str]:
        """Returns the headers for the answer to a completed write."""
        if self.current_position is None or method == "GET" or status >= 400:
            return {}
        try:
            return {POSITION_HEADER: await self.current_position()}
        except ReverieError as error:
            # The write is committed, even if the position cannot be read.
            log.warning("log_position_unknown", reason=str(error))
            return {}

    def wait_for_position(self, headers: Mapping[str, str]) -> AbstractContextManager[None]:
        """Within it, reads see what the headers name."""
        return self.read_barrier(headers) if self.read_barrier is not None else nullcontext()

    def record_proxied(
        self, request_headers: Mapping[str, str], reply_headers: Mapping[str, str]
    ) -> None:
        """Records the position in the answer to a forwarded call."""
        if self.record_position is not None and POSITION_HEADER in reply_headers:
            self.record_position(request_headers, reply_headers[POSITION_HEADER])
