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
    """`POST /v1/sessions/start`.

    A repeated `external_id` returns the same session. `at` is the start time of a session that is
    recorded later. `include_context: false` leaves the context block out. `context_shown` means
    that the caller shows the block to the agent: its memories count as given to the session.
    `compacted` means that the agent's context no longer holds earlier answers. Sessions of the same
    `group` share the scope `group/<group>`, but no transcript.
    """

    agent: Name
    project: Name | None = None
    user: Name | None = None
    branch: Name | None = None
    group: Name | None = None
    external_id: Name | None = None
    at: Timestamp | None = None
    include_context: bool = True
    context_shown: bool = False
    compacted: bool = False


class StartSessionResponse(ResponseBody):
    """The session, the scope of its memories, and the context block."""

    session: UUID
    scope: str
    context: str


class SessionBody(ResponseBody):
    """A session in a list. `summary` is the text that the client sent at its end."""

    id: UUID
    agent: str
    scope: str
    project: str | None = None
    branch: str | None = None
    user: str | None = None
    group: str | None = None
    external_id: str | None = None
    turns: int
    started_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    summary: str | None = None


class SessionPage(PageResponse):
    """`GET /v1/sessions`, newest first. It lists sessions whose turns the key may read."""

    items: list[SessionBody]


class EndSessionRequest(RequestBody):
    """`POST /v1/sessions/{id}/end`. `at` is the end time of a session that is recorded later."""

    summary: NonBlankStr | None = None
    at: Timestamp | None = None


class EndSessionResponse(ResponseBody):
    """`dream` is the request to digest the session. It is null if no undigested turn is left."""

    session: UUID
    dream: DreamRequestStatus | None


class CorrectionMessage(RequestBody):
    """One message of a turn."""

    role: Literal["user", "assistant", "tool", "system"]
    content: NonBlankStr


class CorrectSessionRequest(RequestBody):
    """`POST /v1/sessions/{id}/correct`: the content of the finished turn.

    Send its `messages`, or a `diff` with the text that the user wrote or changed. Only user
    messages can correct memories.
    """

    messages: list[CorrectionMessage] = Field(default_factory=list, max_length=200)
    diff: NonBlankStr | None = None


class CorrectedMemory(ResponseBody):
    """One correction. `old` is the corrected memory, or null. `new` replaces it. `quote` is the
    user's text.
    """

    old: UUID | None
    new: UUID
    quote: str


class CorrectSessionResponse(ResponseBody):
    """The corrections of a turn.

    `skipped` says why the turn was not processed: `cooldown`, `seen` (already processed) or
    `nothing` (no correction found).
    """

    session: UUID
    corrections: list[CorrectedMemory] = Field(default_factory=list)
    skipped: Literal["cooldown", "seen", "nothing"] | None = None
    degraded: list[str] = Field(default_factory=list)


class NewTurnBody(RequestBody):
    """One message. A repeated `external_id` in a session is a duplicate and is not stored."""

    role: Literal["user", "assistant", "tool", "system"]
    content: NonBlankStr
    at: Timestamp | None = None
    tool: Name | None = None
    external_id: Name | None = None


class AppendTurnsRequest(RequestBody):
    """`POST /v1/turns`: 1 to 1,000 turns of a session."""

    session: UUID
    turns: list[NewTurnBody] = Field(min_length=1, max_length=1000)


class AppendTurnsResponse(ResponseBody):
    """The number of new turns, of duplicates, and of replaced secrets."""

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


class ReplayMemory(ResponseBody):
    """A memory in a replay. `learned`: a dream made it from the turn; else it was remembered."""

    id: UUID
    label: str
    kind: str
    scope: str
    learned: bool = False


class ReplayRecall(ResponseBody):
    """What was asked of memory. `memories` are those that a preflow gave; `given` counts them."""

    id: UUID
    at: AwareDatetime
    query: str
    returned: int
    given: int | None = None
    delivered_at: AwareDatetime | None = None
    memories: list[ReplayMemory] = Field(default_factory=list)


class ReplayTurn(TurnBody):
    """A turn with what a tool gave: `output` is all of it, up to 16,000 characters.
    It is null where `content` holds no less.
    """

    output: str | None = None


class ReplayStep(ResponseBody):
    """A turn, what was asked of memory around it, and what memory took from it."""

    turn: ReplayTurn
    recalls: list[ReplayRecall] = Field(default_factory=list)
    memories: list[ReplayMemory] = Field(default_factory=list)


class ReplayPage(PageResponse):
    """`GET /v1/sessions/{id}/replay`, in order. What the key may not read is left out."""

    items: list[ReplayStep]


class TurnPage(PageResponse):
    """`GET /v1/sessions/{id}/turns`, in order."""

    items: list[TurnBody]
