"""Bodies of claims that were learned."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, Strict

from reverie.contracts.base import Answer, Name, Page, Request, Text
from reverie.contracts.memories import MemoryBody, Remembered

Sure = Literal["high", "medium", "low"]


class Claim(Request):
    """`POST /v1/claims`. `domains`: hosts or addresses of pages that say so."""

    topic: Name
    claim: Text
    confidence: Sure
    domains: list[Name] = Field(default_factory=list, max_length=100)
    verified: Annotated[date, Strict(False)]
    kind: Literal["lesson", "reference"] = "lesson"
    scope: Text | None = None
    session: UUID | None = None


class Tag(Answer):
    """What is known of a claim. `corroborated` counts independent root domains."""

    topic: str
    claim: str
    confidence: Sure
    corroborated: int
    domains: list[str]
    verified: date


class ClaimLearned(Remembered):
    """What a claim did: created, superseded (an earlier verification of it), or duplicate."""

    key: str
    learned: Tag


class ClaimBody(MemoryBody):
    """A claim as it is listed."""

    learned: Tag


class ClaimPage(Page):
    """`GET /v1/claims`, newest first."""

    items: list[ClaimBody]
