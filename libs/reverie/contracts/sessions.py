"""Bodies of sessions, their turns, and corrections made in a session."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import (
    Name,
    NonBlankStr,
    PageResponse,
    RequestBody,
    ResponseBody,
    Timestamp,
)
from reverie.contracts.dreams import DreamRequestStatus


class StartSessionRequest(RequestBody):
    """`POST /v1/sessions/start`. `external_id` makes the start repeatable; `at`: when it began, of
    one that is told afterwards."""

    agent: Name
    project: Name | None = None
    user: Name | None = None
    branch: Name | None = None
    external_id: Name | None = None
    at: Timestamp | None = None


class StartSessionResponse(ResponseBody):
    """The session, the scope its memories go to, and what to know before starting."""

    session: UUID
    scope: str
    context: str


class SessionBody(ResponseBody):
    """A session as it is listed; `summary` is what was said of it at its end."""

    id: UUID
    agent: str
    scope: str
    project: str | None = None
    branch: str | None = None
    user: str | None = None
    external_id: str | None = None
    turns: int
    started_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    summary: str | None = None


class SessionPage(PageResponse):
    """`GET /v1/sessions`, newest first: those whose turns the key may read."""

    items: list[SessionBody]


class EndSessionRequest(RequestBody):
    """`POST /v1/sessions/{id}/end`. `at`: when it was over, of one that is told afterwards."""

    summary: NonBlankStr | None = None
    at: Timestamp | None = None


class EndSessionResponse(ResponseBody):
    """`dream` names the request that will digest the session; null where nothing is left."""

    session: UUID
    dream: DreamRequestStatus | None


class CorrectionMessage(RequestBody):
    """One message of a turn."""

    role: Literal["user", "assistant", "tool", "system"]
    content: NonBlankStr


class CorrectSessionRequest(RequestBody):
    """`POST /v1/sessions/{id}/correct`: what was said in the turn that is over.

    `messages` of it, of which those of the user correct; or `diff`, what the user said or changed.
    """

    messages: list[CorrectionMessage] = Field(default_factory=list, max_length=200)
    diff: NonBlankStr | None = None


class CorrectedMemory(ResponseBody):
    """One correction: the memory that is out (null: none stood), the one in its place, and why."""

    old: UUID | None
    new: UUID
    quote: str


class CorrectSessionResponse(ResponseBody):
    """What a turn corrected. `skipped`: why it was not looked at (cooldown, seen, nothing)."""

    session: UUID
    corrections: list[CorrectedMemory] = Field(default_factory=list)
    skipped: Literal["cooldown", "seen", "nothing"] | None = None
    degraded: list[str] = Field(default_factory=list)


class NewTurnBody(RequestBody):
    """One message. A repeated `external_id` in a session is a duplicate, not a second turn."""

    role: Literal["user", "assistant", "tool", "system"]
    content: NonBlankStr
    at: Timestamp | None = None
    tool: Name | None = None
    external_id: Name | None = None


class AppendTurnsRequest(RequestBody):
    """`POST /v1/turns`."""

    session: UUID
    turns: list[NewTurnBody] = Field(min_length=1, max_length=1000)


class AppendTurnsResponse(ResponseBody):
    """How many turns were new, how many known, and how many secrets were replaced."""

    accepted: int
    duplicates: int
    redactions: int = 0


class TurnBody(ResponseBody):
    """A stored turn."""

    id: UUID
    session: UUID
    ordinal: int
    role: str
    content: str
    at: AwareDatetime
    tool: str | None = None
    external_id: str | None = None
    digested: bool = False


class TurnPage(PageResponse):
    """`GET /v1/sessions/{id}/turns`, in order."""

    items: list[TurnBody]
