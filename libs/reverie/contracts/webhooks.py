"""Bodies of push webhooks: their secrets, and the response to a delivery."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from reverie.contracts.base import PageResponse, RequestBody, ResponseBody

WebhookProvider = Literal["github", "gitlab"]


class SetWebhookRequest(RequestBody):
    """`PUT /v1/git/webhooks/{project}/{kind}`: the secret that the sender signs with; one is made
    where none is given."""

    secret: Annotated[
        str | None, StringConstraints(min_length=8, max_length=500, pattern=r"^[\x21-\x7e]+$")
    ] = None


class WebhookBody(ResponseBody):
    """A webhook that is set up. `path`: where its deliveries go, below the gateway's address. Not
    `readable`: its secret is sealed under a master key that is not set."""

    project: str
    kind: WebhookProvider
    path: str
    readable: bool
    updated_by: str
    created_at: datetime
    updated_at: datetime


class CreatedWebhookBody(WebhookBody):
    """A webhook with its secret, shown this once."""

    secret: str


class WebhookPage(PageResponse):
    """`GET /v1/git/webhooks`: in the order of project and kind."""

    items: list[WebhookBody]


class DeleteWebhookResponse(ResponseBody):
    """A webhook whose deliveries are refused from now on."""

    project: str
    kind: WebhookProvider


class WebhookDeliveryResponse(ResponseBody):
    """What became of a delivery: the change it told, or why it tells none (`ignored`)."""

    event: UUID | None = None
    duplicate: bool = False
    ignored: str | None = None
    hints: list[str] = Field(default_factory=list)
