"""Bodies of the engine: agents, groups, messages, turns, and the events of turns."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, Base64Bytes, Field, StringConstraints

from reverie.contracts.base import Name, NonBlankStr, PageResponse, RequestBody, ResponseBody

Mode = Literal["unified", "plan", "dream"]
AgentName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$", strip_whitespace=True)
]
"""What `@` mentions: a slug."""
FileName = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f\u2028\u2029]{1,200}$")]
"""Of one line: it stands in the text of its message."""
MAX_AGENTS = 16
"""The most agents of a group, and so the widest fan-out of `@all`."""


class AgentBudget(RequestBody):
    """Limits of an agent: tokens and dollars a day (UTC), and requests of one turn."""

    tokens_per_day: Annotated[int, Field(ge=0)] | None = None
    usd_per_day: Annotated[float, Field(ge=0)] | None = None
    requests_per_turn: Annotated[int, Field(ge=1, le=500)] = 50


class AgentBody(RequestBody):
    """`PUT /v1/agents/{name}`.

    `models`: names of `engine_models`, the fallbacks after the first; none is `default`. `persona`:
    one of the personas, or a text of its own. `tools`: null allows all that the mode and the
    settings allow. `servers`: MCP servers of the operator whose tools it may use, too. `ask`: the
    tools that wait for a person's approval; the name of a server stands for all of its tools.
    """

    models: list[Name] = Field(default=["default"], min_length=1, max_length=5)
    persona: Annotated[str, StringConstraints(max_length=8000)] = ""
    language: Literal["en", "zh"] = "en"
    mode: Mode = "unified"
    tools: list[Name] | None = Field(default=None, max_length=100)
    servers: list[Name] = Field(default=[], max_length=16)
    ask: list[Name] = Field(default=["write_file", "run_command"], max_length=100)
    budget: AgentBudget = AgentBudget()


class AgentInfo(ResponseBody):
    """An agent. `built_in`: one of the five that are there to begin with."""

    name: str
    built_in: bool
    spec: dict[str, Any]


class AgentList(ResponseBody):
    """`GET /v1/agents`, with the names of models, tools and servers that an agent may have."""

    items: list[AgentInfo]
    models: list[str]
    tools: list[str]
    servers: list[str] = Field(default_factory=list)


class CreateGroupRequest(RequestBody):
    """`POST /v1/groups`. The first agent is the default one.

    `answers`: who answers a message that mentions nobody. A repeated `external_id` is the same
    group only with an idempotency key.
    """

    agents: list[AgentName] = Field(min_length=1, max_length=MAX_AGENTS)
    name: Name | None = None
    project: Name | None = None
    answers: Literal["default", "everyone"] = "default"


class GroupBody(ResponseBody):
    """A group. `session` is the session that holds what is said, `scope` that of its memories."""

    id: UUID
    name: str
    session: UUID
    scope: str
    project: str | None = None
    agents: list[str]
    answers: str
    created_at: AwareDatetime


class GroupPage(PageResponse):
    """`GET /v1/groups`, newest first."""

    items: list[GroupBody]


class ImageAttachment(RequestBody):
    """An image, in base64."""

    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    data: Annotated[Base64Bytes, Field(strict=False, min_length=1)]


class GroupImage(ResponseBody):
    """`GET /v1/groups/{id}/images/{image}`: an image with its bytes in base64; `size` in bytes."""

    id: UUID
    media_type: str
    size: int
    data: str


class PostMessageRequest(RequestBody):
    """`POST /v1/groups/{id}/messages`.

    `mentions` is added to the `@names` of the text; `@all` is every agent. `files` are texts to
    read with the message, by name. `mode` narrows that of the agents.
    """

    text: NonBlankStr
    mentions: list[AgentName] = Field(default_factory=list, max_length=MAX_AGENTS)
    files: dict[FileName, str] = Field(default_factory=dict, max_length=20)
    images: list[ImageAttachment] = Field(default_factory=list, max_length=8)
    mode: Mode | None = None


class PostedMessage(ResponseBody):
    """The message, the turns that it caused, and `after`: the position to watch events from."""

    id: UUID
    no: int
    turns: dict[str, UUID]
    after: int


class MessageBody(ResponseBody):
    """What was said. An agent's answer names its turn."""

    no: int
    id: UUID
    author: str
    content: str
    images: list[UUID]
    turn: UUID | None = None
    at: AwareDatetime


class TurnInfo(ResponseBody):
    """A turn of an agent: its state, its place in the chain, and what it cost.

    `waits`: the tool calls that a person decides, each with what was decided.
    """

    id: UUID
    chain: UUID
    parent: UUID | None = None
    depth: int
    agent: str
    mode: str
    status: str
    attempts: int
    requests: int
    tokens: int
    micro_usd: int
    outcome: str | None = None
    error: str | None = None
    created_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    waits: dict[str, Any] = Field(default_factory=dict)


class MessagePage(ResponseBody):
    """`GET /v1/groups/{id}/messages`, oldest first.

    `next` is the `after` of the next page. Asked with `before`, `previous` is the `before` of the
    page with earlier messages.
    """

    items: list[MessageBody]
    turns: list[TurnInfo]
    next: int | None = None
    previous: int | None = None


class ApproveRequest(RequestBody):
    """`POST /v1/groups/{id}/approvals`: decides one tool call that waits."""

    turn: UUID
    call: NonBlankStr
    approved: bool
    reason: Annotated[str, StringConstraints(max_length=1000)] = ""


class StopRequest(RequestBody):
    """`POST /v1/groups/{id}/stop`: stops one turn, or all that are open."""

    turn: UUID | None = None


class StopResponse(ResponseBody):
    """The turns that were asked to stop."""

    turns: list[UUID]


class SpendBody(ResponseBody):
    """`GET /v1/agents/spend`: today's tokens and millionths of dollars by agent, and the limits."""

    agents: dict[str, dict[str, int]]
    limits: dict[str, int]


class EngineEvent(ResponseBody):
    """An event of a turn, at a position of the stream.

    `type`: turn_started, memory, text_delta, thinking_delta, tool_call, tool_result, approval,
    handed_on, usage, notice, stop, result.

    A client that saw a part of step `step` under a lower `epoch`
    forgets that part: the worker died, and the step began again.
    """

    type: str
    turn: UUID
    agent: str
    epoch: int
    step: int = 0
    data: dict[str, Any] = Field(default_factory=dict)
