"""Bodies of reviews: what a language model says of memories that changes put in doubt."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from reverie.contracts.base import Answer, Page

State = Literal["open", "accepted", "refused"]


class ReviewBody(Answer):
    """What is said of a memory at a version. `holds`, `changed` (it should read `content`), `gone`,
    or `unsure`; `told`: what it says now; `made_by`: prompt and model."""

    id: UUID
    memory: UUID
    version: int
    scope: str
    told: str
    verdict: Literal["holds", "changed", "gone", "unsure"]
    content: str | None = None
    why: str
    made_by: str
    state: State
    made: datetime
    decided: datetime | None = None
    who: str | None = None


class ReviewPage(Page):
    """`GET /v1/reviews`."""

    items: list[ReviewBody]


class Decided(Answer):
    """`POST /v1/reviews/{id}/accept` and `/refuse`."""

    id: UUID
    memory: UUID
    state: State
