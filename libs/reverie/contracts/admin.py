"""Bodies of administration: keys, audit, scopes, projects, the tenant, models, webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints

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
    """Limits of one key. A null or omitted field means no limit.

    Days begin at midnight UTC. `bytes_per_day` counts request bodies. `llm_tokens_per_day` counts
    tokens that a language model reads and writes for the key. A tenant has separate limits.
    """

    requests_per_minute: Annotated[int, Field(ge=1, le=2**53)] | None = None
    requests_per_day: DailyLimit | None = None
    memories_per_day: DailyLimit | None = None
    bytes_per_day: DailyLimit | None = None
    llm_tokens_per_day: DailyLimit | None = None


class CreateKeyRequest(RequestBody):
    """`POST /v1/admin/keys`.

    A pattern in `reads` and `writes` is `*`, a scope, or a scope with `/*` for all scopes below it.
    If only one of them is given, the other is the same; if neither is, both are `*`. `agent` (or
    `<agent>/sub/<sub-agent>`) binds the key to that agent, and `user` to that person. A bound key
    cannot read the scopes of other agents or of other users.
    """

    label: Name
    role: Annotated[Literal["admin", "writer", "reader", "ci"], Field()] = "writer"
    reads: list[NonBlankStr] | None = Field(default=None, max_length=100)
    writes: list[NonBlankStr] | None = Field(default=None, max_length=100)
    project: Name | None = None
    agent: Name | None = None
    user: Name | None = None
    expires_at: Timestamp | None = None
    limits: KeyLimits | None = None


class UpdateKeyRequest(RequestBody):
    """`PATCH /v1/admin/keys/{id}`.

    An omitted field stays unchanged. Null removes the expiry or the limits.
    """

    label: Name | None = None
    expires_at: Timestamp | None = None
    limits: KeyLimits | None = None


class RotateKeyRequest(RequestBody):
    """`POST /v1/admin/keys/{id}/rotate`. The old text remains valid for `overlap_seconds`."""

    overlap_seconds: Annotated[int, Field(ge=0, le=30 * 86_400)] = 3600
    expires_at: Timestamp | None = None


class KeyBody(ResponseBody):
    """A key without its text.

    The text before the last rotation is valid until `previous_expires_at`.
    """

    id: UUID
    label: str
    role: str
    reads: list[str]
    writes: list[str]
    project: str | None = None
    agent: str | None = None
    user: str | None = None
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = None
    revoked_at: AwareDatetime | None = None
    limits: dict[str, int] = Field(default_factory=dict)
    previous_expires_at: AwareDatetime | None = None


class KeyUsageBody(KeyBody):
    """`GET /v1/admin/keys/{id}`: a key, and the use of its limits."""

    used: dict[str, int]


class CreatedKeyBody(KeyBody):
    """A key with its text in `key`. The text is shown only once."""

    key: str


class KeyPage(PageResponse):
    """`GET /v1/admin/keys`, oldest first."""

    items: list[KeyBody]


class RevokeKeyResponse(ResponseBody):
    """`DELETE /v1/admin/keys/{id}`.

    Services may accept the key for `key_cache_ttl` more seconds.
    """

    id: UUID


class AuditEntryBody(ResponseBody):
    """One recorded call.

    `actor` is the agent, otherwise the key. `action` is the method and route. `subjects` are the
    ids and names that the call concerns. `client` is the name that the client program sends.
    """

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


class DeadLetterBody(ResponseBody):
    """A message that no worker could handle; `seq` is its number.

    `consumer` gave it up after `deliveries`, for `reason`. `dropped_bytes`: the size of a body that
    was too large to keep, else 0.
    """

    seq: int
    at: AwareDatetime
    stream: str
    consumer: str
    subject: str
    reason: str
    deliveries: int
    dropped_bytes: int


class DeadLetterDetail(DeadLetterBody):
    """`GET /v1/admin/dead-letters/{seq}`: a dead letter with its body as text."""

    data: str


class DeadLetterPage(PageResponse):
    """`GET /v1/admin/dead-letters`, oldest first."""

    items: list[DeadLetterBody]


class ReplayResponse(ResponseBody):
    """`POST /v1/admin/dead-letters/{seq}/replay`: how many were sent again."""

    replayed: int


class ScopeBody(ResponseBody):
    """A scope, and its memories by kind and by status.

    `name` is the original name where the slug differs from it.
    """

    scope: str
    name: str | None = None
    kinds: dict[str, int]
    statuses: dict[str, int]
    sessions: int


class ScopePage(PageResponse):
    """`GET /v1/admin/scopes`, by name."""

    items: list[ScopeBody]


class ProjectBody(ResponseBody):
    """A project, with counts of its content in all its scopes."""

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
    """Deleted rows by table, and deleted messages by stream.

    `done` is false if time ran out. Then repeat the call, with `next` as its `cursor` if `next` is
    set.
    """

    done: bool
    next: str | None = None
    rows: dict[str, int]
    messages: dict[str, int]


class DeleteTenantRequest(RequestBody):
    """`DELETE /v1/admin/tenant`. `confirm` must be the name of the tenant."""

    confirm: Name


class ModelBody(ResponseBody):
    """A model and its use.

    `state` is `ready` for a loaded model and for an endpoint; a `missing` model is not available.
    `active` is false for an embedding model that is still being filled. For such a model,
    `embedded` of the `chunks` have a vector. `max_tokens` is the input limit; a longer text is
    split. `used_for` names the functions that use the model.
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


class EnrichmentBacklogBody(ResponseBody):
    """How many memories wait for enrichment, 1,000 at most, and since when the oldest does.

    They are found by their words, and not yet by their meaning or over the graph.
    """

    waiting: int
    since: AwareDatetime | None = None


class ModelListResponse(ResponseBody):
    """`GET /v1/models`: the models of the gateway and of the caller's tenant.

    `enrichment` is what they have still to read, in scopes that the caller may read.
    """

    models: list[ModelBody]
    enrichment: EnrichmentBacklogBody


WebhookProvider = Literal["github", "gitlab"]


class SetWebhookRequest(RequestBody):
    """`PUT /v1/git/webhooks/{kind}/{project}`.

    `secret` is the signing secret of the sender. The service generates one by default.
    """

    secret: Annotated[
        str | None, StringConstraints(min_length=8, max_length=500, pattern=r"^[\x21-\x7e]+$")
    ] = None


class WebhookBody(ResponseBody):
    """A configured webhook. `path` is the delivery path below the gateway's address.

    `readable` is false if the secret is encrypted with a master key that is not configured.
    """

    project: str
    kind: WebhookProvider
    path: str
    readable: bool
    updated_by: str
    created_at: datetime
    updated_at: datetime


class CreatedWebhookBody(WebhookBody):
    """A webhook with its secret. The secret is shown only once."""

    secret: str


class WebhookPage(PageResponse):
    """`GET /v1/git/webhooks`, ordered by project and kind."""

    items: list[WebhookBody]


class DeleteWebhookResponse(ResponseBody):
    """The deleted webhook. The service refuses its deliveries from now on."""

    project: str
    kind: WebhookProvider


class WebhookDeliveryResponse(ResponseBody):
    """The result of a delivery: the stored `event`, or the reason why it was `ignored`."""

    event: UUID | None = None
    duplicate: bool = False
    ignored: str | None = None
    hints: list[str] = Field(default_factory=list)
