"""Bodies of tending: the archive and promotion."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from reverie.contracts.base import Answer


class TendAnswer(Answer):
    """`POST /v1/dream/tend`: how many memories were looked at, and what was done to how many.

    `collected`: files and entities that nothing touches; `restored`: those touched again;
    `topics`: nodes of what memories keep being about that arose, changed or dissolved;
    `ranked`: memories whose weight in the graph was computed; `proposed`: for the vault;
    `derived`: lessons that several memories show; `reviewed`: memories in doubt that the language
    model looked over; `unfinished`: passes whose time was over.
    """

    looked: int = 0
    archived: int = 0
    promoted: int = 0
    collected: int = 0
    restored: int = 0
    merged: int = 0
    contradicted: int = 0
    topics: int = 0
    ranked: int = 0
    proposed: int = 0
    derived: int = 0
    reviewed: int = 0
    unfinished: list[str] = Field(default_factory=list)


class Restored(Answer):
    """`POST /v1/memories/{id}/restore`: the memory is active again."""

    id: UUID
    version: int
    status: str = "active"
