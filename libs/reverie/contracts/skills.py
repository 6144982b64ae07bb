"""Bodies of skills: procedures ready to follow."""

from __future__ import annotations

from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import Answer, Page


class SkillBody(Answer):
    """A skill without its steps. `places`: the names in braces that a replay fills."""

    id: UUID
    short_id: str
    scope: str
    key: str | None = None
    title: str
    steps: int
    places: list[str]
    tags: list[str]
    version: int
    created_at: AwareDatetime
    updated_at: AwareDatetime


class SkillPage(Page):
    """`GET /v1/skills`: those that are active, the newest first."""

    items: list[SkillBody]


class Replayed(Answer):
    """`text` is the title and the numbered steps; `missing` names the places nothing filled."""

    id: UUID
    version: int
    title: str
    steps: list[str]
    text: str
    missing: list[str] = Field(default_factory=list)
