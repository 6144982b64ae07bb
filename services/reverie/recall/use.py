"""What answers did to the memories in them: they were used. Written beside the requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import structlog

from reverie.domain.access import Principal
from reverie.domain.errors import ReverieError
from reverie.runtime.later import Later
from reverie.store.uses import Use, Uses

log = structlog.get_logger("reverie.recall")

WAITING = 5_000
"""Answers whose uses wait at most: those of more are lost, as they are when a process is killed."""

Note = tuple[Principal, Use]


class UseNotes:
    """Counts the use of what was answered; a store that does not answer loses it."""

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._later = Later(self._write_all, WAITING)
        self.keep_writing, self.flush = self._later.keep_writing, self._later.flush

    def take(self, who: Principal, session: UUID | None, ids: Sequence[UUID]) -> None:
        """Returns at once."""
        if ids:
            self._later.take((who, Use(used_by(who, session, datetime.now(UTC)), ids)))

    async def _write_all(self, batch: list[Note]) -> None:
        """Those who may read the same together: what they may not read is not lifted."""
        alike: dict[tuple[int, tuple[str, ...]], list[Use]] = defaultdict(list)
        for who, use in batch:
            alike[who.tenant, who.reads].append(use)
        for (tenant, reads), uses in alike.items():
            try:
                await self._uses.note(tenant, reads, uses)
            except ReverieError as error:
                log.warning("use_not_noted", error=type(error).__name__, uses=len(uses))


def used_by(who: Principal, session: UUID | None, now: datetime) -> str:
    """As whom a reader counts once: a session; without one, a key in an hour."""
    return f"session {session}" if session else f"key {who.key_id} {now:%Y-%m-%dT%H}"
