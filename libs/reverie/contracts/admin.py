"""Bodies of administration: API keys, the audit log, scopes, projects, the tenant, models."""

from __future__ import annotations

from typing import Annotated, Literal
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

DailyLimit = Annotated[int, Field(ge=0, le=2**53)]


class KeyLimits(RequestBody):
    """What a key may do, or all keys of a tenant together; null and what is left out: no limit.

    Days begin at midnight (UTC). `bytes_per_day`: of the bodies of requests. `llm_tokens_per_day`:
    what a language model reads and writes for calls of the key. A tenant has limits of its own.
    """

    requests_per_minute: Annotated[int, Field(ge=1, le=2**53)] | None = None
    requests_per_day: DailyLimit | None = None
    memories_per_day: DailyLimit | None = None
    bytes_per_day: DailyLimit | None = None
    llm_tokens_per_day: DailyLimit | None = None


class CreateKeyRequest(RequestBody):
    """`POST /v1/admin/keys`. Patterns: `*`, a scope, or `/*` after one for all below it.

    `agent` (or `<agent>/sub/<sub-agent>`) binds the key to it: it sees no other agent's scopes.
    """

    label: Name
    role: Annotated[Literal["admin", "writer", "reader", "ci"], Field()] = "writer"
    reads: list[NonBlankStr] = Field(default_factory=lambda: ["*"], max_length=100)
    writes: list[NonBlankStr] = Field(default_factory=lambda: ["*"], max_length=100)
    project: Name | None = None
    agent: Name | None = None
    expires_at: Timestamp | None = None
    limits: KeyLimits | None = None


class UpdateKeyRequest(RequestBody):
    """`PATCH /v1/admin/keys/{id}`: what is left out stays; null: no end, no limits."""

    label: Name | None = None
    expires_at: Timestamp | None = None
    limits: KeyLimits | None = None


class RotateKeyRequest(RequestBody):
    """`POST /v1/admin/keys/{id}/rotate`: for `overlap_seconds` the old text works too."""

    overlap_seconds: Annotated[int, Field(ge=0, le=30 * 86_400)] = 3600
    expires_at: Timestamp | None = None


class KeyBody(ResponseBody):
    """A key without its text.

    Until `previous_expires_at`, the text before the rotation works too.
    """

    id: UUID
    label: str
    role: str
    reads: list[str]
    writes: list[str]
    project: str | None = None
    agent: str | None = None
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = None
    revoked_at: AwareDatetime | None = None
    limits: dict[str, int] = Field(default_factory=dict)
    previous_expires_at: AwareDatetime | None = None


class KeyUsageBody(KeyBody):
    """`GET /v1/admin/keys/{id}`: with what it used of its limits, where it has any."""

    used: dict[str, int]


class CreatedKeyBody(KeyBody):
    """A key with its text, which is shown this once."""

    key: str


class KeyPage(PageResponse):
    """`GET /v1/admin/keys`, in the order of their making."""

    items: list[KeyBody]


class RevokeKeyResponse(ResponseBody):
    """`DELETE /v1/admin/keys/{id}`. Services trust it for `key_cache_ttl` more."""

    id: UUID


class AuditEntryBody(ResponseBody):
    """One call. `who`: the agent, else the key; `action`: method and route; `subjects`: ids and
    names of what it was about; `client`: the program, as it calls itself."""

    id: UUID
    at: AwareDatetime
    key: str
    actor: str
    service: str
    action: str
    changes: bool
    status: int
    problem: str | None = None
    subjects: list[str]
    trace_id: str | None = None
    client: str


class AuditPage(PageResponse):
    """`GET /v1/admin/audit`, newest first."""

    items: list[AuditEntryBody]


class ScopeBody(ResponseBody):
    """A scope, what people call it where that is no slug, and its memories by kind and status."""

    scope: str
    name: str | None = None
    kinds: dict[str, int]
    statuses: dict[str, int]
    sessions: int


class ScopePage(PageResponse):
    """`GET /v1/admin/scopes`, by name."""

    items: list[ScopeBody]


class ProjectBody(ResponseBody):
    """A project, and what lies in it and below it."""

    project: str
    name: str | None = None
    scopes: int
    memories: int
    sessions: int
    changes: int


class ProjectPage(PageResponse):
    """`GET /v1/admin/projects`, by name."""

    items: list[ProjectBody]


class DeletionResponse(ResponseBody):
    """What was deleted: rows by table, messages by stream.

    `done` is false where time ran out: the same call goes on, with `next` as its `cursor` where
    one is given.
    """

    done: bool
    next: str | None = None
    rows: dict[str, int]
    messages: dict[str, int]


class DeleteTenantRequest(RequestBody):
    """`DELETE /v1/admin/tenant`: `confirm` is the tenant's name."""

    confirm: Name


class ModelBody(ResponseBody):
    """A model and what it is for.

    `state`: `ready` is loaded, or an endpoint that is asked when needed; `missing` cannot be had
    now. `active`: what the tenant's memories mean goes by it. `chunks` of them are to have a vector
    of it, `filled` have one; both are told of one that is being filled beside the active one.
    `max_tokens`: what it reads at once; a longer text is read in parts. `used_for`: what asks it.
    """

    role: Literal["embedding", "sparse", "reranker", "language"]
    name: str
    location: Literal["local", "endpoint"]
    state: Literal["ready", "loading", "missing"]
    active: bool = True
    provider: str | None = None
    dims: int | None = None
    max_tokens: int | None = None
    licence: str | None = None
    embedded: int | None = None
    chunks: int | None = None
    used_for: list[str] = Field(default_factory=list)


class ModelListResponse(ResponseBody):
    """`GET /v1/models`: the models of the gateway and of the tenant that asks."""

    models: list[ModelBody]
