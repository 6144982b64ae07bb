"""Bodies of administration: keys, scopes, projects, a tenant."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import Answer, Moment, Name, Page, Request, Text


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


class KeyBody(Answer):
    """A key without its text."""

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


class MadeKey(KeyBody):
    """A new key; `key` is its text, which is shown this once."""

    key: str


class KeyPage(Page):
    """`GET /v1/admin/keys`, in the order of their making."""

    items: list[KeyBody]


class RevokedKey(Answer):
    """`DELETE /v1/admin/keys/{id}`. Services trust it for `key_cache_seconds` more."""

    id: UUID


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
