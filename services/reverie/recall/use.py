"""What an answer did to the memories in it: they were used. Written after the reply."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import structlog

from reverie.domain.access import Principal
from reverie.domain.errors import ReverieError
from reverie.domain.memory import Memory
from reverie.recall.parts import Parts
from reverie.recall.rank import Answer

log = structlog.get_logger("reverie.recall")


async def note_use(parts: Parts, who: Principal, session: UUID | None, answer: Answer) -> None:
    """Counts the use of what was answered; a store that does not answer loses it."""
    ids = [hit.item.id for hit in answer.hits if isinstance(hit.item, Memory)]
    await note_ids(parts, who, session, ids)


async def note_ids(parts: Parts, who: Principal, session: UUID | None, ids: Sequence[UUID]) -> None:
    """The same of memories by their ids."""
    if not ids:
        return
    try:
        await parts.uses.note(who, used_by(who, session, datetime.now(UTC)), ids)
    except ReverieError as error:
        log.warning("use_not_noted", error=type(error).__name__, memories=len(ids))


def used_by(who: Principal, session: UUID | None, now: datetime) -> str:
    """As whom a reader counts once: a session; without one, a key in an hour."""
    return f"session {session}" if session else f"key {who.key_id} {now:%Y-%m-%dT%H}"
