"""Tells the writer of a memory what it contradicts, so that the user is asked."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from reverie.contracts.memories.memories import RememberConflict, RememberResponse
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import ReverieError
from reverie.domain.core.memory import NewMemory
from reverie.store.graph.conflicts import ConflictFinder, ContradictedMemory

log = structlog.get_logger("reverie.ingest")

ASK_USER_HINT = (
    "this contradicts what stands (see conflicts): ask your user which of them holds, then "
    "supersede or forget the other"
)


async def find_conflicts(
    finder: ConflictFinder, principal: Principal, memory: NewMemory
) -> list[ContradictedMemory]:
    """What the memory contradicts; nothing where that cannot be looked up: it is a hint."""
    try:
        return await finder.find(principal, memory)
    except ReverieError as error:
        log.warning("conflicts_not_searched", reason=str(error))
        return []


def add_conflicts(
    response: RememberResponse, conflicts: Sequence[ContradictedMemory]
) -> RememberResponse:
    """The answer for a new memory, with what it contradicts."""
    standing = [item for item in conflicts if item.id != response.id]
    if response.status != "created" or not standing:
        return response
    bodies = [RememberConflict(**vars(item)) for item in standing]
    return response.model_copy(
        update={"conflicts": bodies, "hints": [*response.hints, ASK_USER_HINT]}
    )
