"""Bodies of skills: procedures ready to follow."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from reverie.contracts.base import Answer


class Replayed(Answer):
    """`text` is the title and the numbered steps; `missing` names the places nothing filled."""

    id: UUID
    version: int
    title: str
    steps: list[str]
    text: str
    missing: list[str] = Field(default_factory=list)
