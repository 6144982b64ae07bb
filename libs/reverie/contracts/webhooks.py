"""Bodies of push webhooks: their secrets, and the response to a delivery."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from reverie.contracts.base import PageResponse, RequestBody, ResponseBody

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
