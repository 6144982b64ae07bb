"""Bodies of administration: keys, scopes, projects, a tenant."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import Answer, Moment, Name, Page, Request, Text

Amount = Annotated[int, Field(ge=0, le=2**53)]


class SetKeyLimits(Request):
    """What a key may do, or all keys of a tenant together; null and what is left out: no limit.

    Days begin at midnight (UTC). `bytes_a_day`: of the bodies of requests. `llm_tokens_a_day`: what
    a language model reads and writes for calls of the key; a tenant has its own among its settings.
    """

    requests_a_minute: Annotated[int, Field(ge=1, le=2**53)] | None = None
    requests_a_day: Amount | None = None
    memories_a_day: Amount | None = None
    bytes_a_day: Amount | None = None
    llm_tokens_a_day: Amount | None = None


class MakeKey(Request):
    """`POST /v1/admin/keys`. Patterns: `*`, a scope, or `/*` after one for all below it.

    `agent` (or `<agent>/sub/<sub-agent>`) binds the key to it: it sees no other agent's scopes.
    """

    label: Name
    role: Annotated[Literal["admin", "writer", "reader", "ci"], Field()] = "writer"
    reads: list[Text] = Field(default_factory=lambda: ["*"], max_length=100)
    writes: list[Text] = Field(default_factory=lambda: ["*"], max_length=100)
    project: Name | None = None
    agent: Name | None = None
    expires: Moment | None = None
    limits: SetKeyLimits | None = None


class ChangeKey(Request):
    """`PATCH /v1/admin/keys/{id}`: what is left out stays; null: no end, no limits."""

    label: Name | None = None
    expires: Moment | None = None
    limits: SetKeyLimits | None = None


class RotateKey(Request):
    """`POST /v1/admin/keys/{id}/rotate`: for `overlap_seconds` the old text works too."""

    overlap_seconds: Annotated[int, Field(ge=0, le=30 * 86_400)] = 3600
    expires: Moment | None = None


class KeyBody(Answer):
    """A key without its text. `old_until`: as long its text before the last rotation works."""

    id: UUID
    label: str
    role: str
    reads: list[str]
    writes: list[str]
    project: str | None = None
    agent: str | None = None
    created_at: AwareDatetime
    expires: AwareDatetime | None = None
    revoked_at: AwareDatetime | None = None
    limits: dict[str, int] = Field(default_factory=dict)
    old_until: AwareDatetime | None = None


class KeyUse(KeyBody):
    """`GET /v1/admin/keys/{id}`: with what it used of its limits, where it has any."""

    used: dict[str, int]


class MadeKey(KeyBody):
    """A key with its text, which is shown this once."""

    key: str


class KeyPage(Page):
    """`GET /v1/admin/keys`, in the order of their making."""

    items: list[KeyBody]


class RevokedKey(Answer):
    """`DELETE /v1/admin/keys/{id}`. Services trust it for `key_cache_seconds` more."""

    id: UUID


class AuditBody(Answer):
    """One call. `who`: the agent, else the key; `action`: method and route; `subjects`: ids and
    names of what it was about; `client`: the program, as it calls itself."""

    id: UUID
    at: AwareDatetime
    key: str
    who: str
    service: str
    action: str
    changes: bool
    status: int
    problem: str | None = None
    subjects: list[str]
    trace: str | None = None
    client: str


class AuditPage(Page):
    """`GET /v1/admin/audit`, newest first."""

    items: list[AuditBody]


class ScopeBody(Answer):
    """A scope, what people call it where that is no slug, and its memories by kind and status."""

    scope: str
    name: str | None = None
    kinds: dict[str, int]
    statuses: dict[str, int]
    sessions: int


class ScopePage(Page):
    """`GET /v1/admin/scopes`, by name."""

    items: list[ScopeBody]


class ProjectBody(Answer):
    """A project, and what lies in it and below it."""

    project: str
    name: str | None = None
    scopes: int
    memories: int
    sessions: int
    changes: int


class ProjectPage(Page):
    """`GET /v1/admin/projects`, by name."""

    items: list[ProjectBody]


class Deleted(Answer):
    """What was deleted: rows by table, messages by stream.

    `done` is false where time ran out: the same call goes on, with `next` as its `cursor` where
    one is given.
    """

    done: bool
    next: str | None = None
    rows: dict[str, int]
    messages: dict[str, int]


class EndTenant(Request):
    """`DELETE /v1/admin/tenant`: `confirm` is the tenant's name."""

    confirm: Name
