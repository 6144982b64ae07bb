"""Bodies of tending: the archive and promotion."""

from __future__ import annotations

from uuid import UUID

from reverie.contracts.base import Answer


class TendAnswer(Answer):
    """`POST /v1/dream/tend`: how many memories were looked at, archived and promoted."""

    looked: int
    archived: int
    promoted: int


class Restored(Answer):
    """`POST /v1/memories/{id}/restore`: the memory is active again."""

    id: UUID
    version: int
    status: str = "active"
