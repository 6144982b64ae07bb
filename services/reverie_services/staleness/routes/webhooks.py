"""Routes for webhook deliveries and for the secrets that sign them."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

import structlog

from reverie.contracts.admin import (
    CreatedWebhookBody,
    DeleteWebhookResponse,
    SetWebhookRequest,
    WebhookBody,
    WebhookDeliveryResponse,
    WebhookPage,
    WebhookProvider,
)
from reverie.contracts.base import Name
from reverie.contracts.memories.git import GitChange
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import slugify
from reverie.domain.core.consistency import StoredReply
from reverie.domain.core.errors import InvalidInput, Unauthenticated
from reverie.runtime.http.calls import Call, Reply, render_reply
from reverie.runtime.http.exchange import IncomingRequest
from reverie.runtime.http.idempotency import principal_key, run_once
from reverie.runtime.http.pagination import CursorPosition, PageQuery, cut_page, decode_cursor
from reverie.runtime.http.routes import Route
from reverie.runtime.http.validation import parse_body
from reverie.store.platform.webhooks import WebhookInfo
from reverie_services.staleness.change_intake import remember_merge_request, store_change
from reverie_services.staleness.dependencies import StalenessDependencies
from reverie_services.staleness.webhooks.merge_requests import (
    MergedRequest,
    MergeRequestPayload,
    PullRequestPayload,
    parse_merge_request,
    parse_pull_request,
)
from reverie_services.staleness.webhooks.push_events import (
    IgnoredDelivery,
    PushPayload,
    parse_push,
)
from reverie_services.staleness.webhooks.signatures import (
    read_github_signature,
    read_gitlab_signature,
)

log = structlog.get_logger("reverie.staleness")

DELIVERY_IDS = ("X-GitHub-Delivery", "Idempotency-Key", "webhook-id")
"""Headers that stay the same when a delivery is sent again."""
OTHER_REPOSITORY = (
    "the request came from another repository: it names no branch of this one; what its text"
    " decides is remembered"
)
PARTIAL_PUSH_HINT = (
    "the push had more commits than its webhook names; what the others changed is not known: "
    "publish the range with `reverie git announce`"
)


@dataclass(eq=False)
class UnsignedDelivery(Unauthenticated):
    """the delivery is not signed with the secret of a {kind} webhook of this project"""

    kind: str


class WebhookQuery(PageQuery):
    """Of one project, or of all."""

    project: Name | None = None


class WebhookCursor(CursorPosition):
    """A cursor in the order of project and kind."""

    project: str
    kind: str


def build_webhook_routes(deps: StalenessDependencies) -> list[Route]:
    """The routes of webhooks. Deliveries carry a signature in place of a key."""
    handlers = WebhookHandlers(deps)
    table = [
        Route(
            "GET",
            "/v1/git/webhooks",
            handlers.list_webhooks,
            query=WebhookQuery,
            response=WebhookPage,
            summary="List push webhooks, without their secrets",
        ),
    ]
    for kind, forge in (("github", handlers.github), ("gitlab", handlers.gitlab)):
        path = f"/v1/git/webhooks/{kind}/{{project}}"
        table += [
            Route(
                "PUT",
                path,
                forge.set_secret,
                SetWebhookRequest,
                response=CreatedWebhookBody,
                returns_secret=True,
                summary=f"Create the {kind} webhook of a project; its secret is shown only once",
            ),
            Route(
                "DELETE",
                path,
                forge.delete_webhook,
                response=DeleteWebhookResponse,
                summary=f"Delete the {kind} webhook of a project",
            ),
            Route(
                "POST",
                f"/v1/git/{kind}/{{tenant}}/{{project}}",
                forge.handle_delivery,
                response=WebhookDeliveryResponse,
                status=202,
                public=True,
                read_signed_body=forge.read_delivery,
                body_limit=deps.body_limit,
                body_limit_setting="large_body_limit",
                summary=f"Receive a delivery of {kind}",
            ),
        ]
    return table


class WebhookHandlers:
    """Handlers of webhooks: the list, and those of each forge."""

    def __init__(self, deps: StalenessDependencies) -> None:
        self._deps = deps
        self.github = ForgeWebhookHandlers(deps, "github")
        self.gitlab = ForgeWebhookHandlers(deps, "gitlab")

    async def list_webhooks(self, call: Call[None, WebhookQuery]) -> WebhookPage:
        """`GET /v1/git/webhooks`."""
        principal, query = call.principal, call.query
        project = slugify(query.project) if query.project else None
        principal.check_admin(f"project/{project}" if project else "*")
        after = decode_cursor(query.cursor, WebhookCursor)
        position = (after.project, after.kind) if after else ("", "")
        rows = await self._deps.webhooks.page(
            principal, principal.writes, project, query.limit + 1, position
        )
        items, next_cursor = cut_page(
            rows, query.limit, lambda item: WebhookCursor(project=item.project, kind=item.kind)
        )
        return WebhookPage(
            items=[_build_webhook_body(principal, item) for item in items], next=next_cursor
        )


class ForgeWebhookHandlers:
    """The webhooks of one forge."""

    def __init__(self, deps: StalenessDependencies, kind: WebhookProvider) -> None:
        self._deps = deps
        self._kind: WebhookProvider = kind

    async def set_secret(self, call: Call[SetWebhookRequest, None]) -> CreatedWebhookBody:
        """`PUT /v1/git/webhooks/{kind}/{project}`."""
        principal, project = call.principal, slugify(call.path["project"])
        principal.check_admin(f"project/{project}")
        if not self._deps.webhooks.can_encrypt:
            raise InvalidInput("secret", "cannot be kept: set vault_key, which it is sealed under")
        secret = call.body.secret or secrets.token_urlsafe(32)
        webhook = await self._deps.webhooks.put(principal, project, self._kind, secret)
        return CreatedWebhookBody(
            **_build_webhook_body(principal, webhook).model_dump(), secret=secret
        )

    async def delete_webhook(self, call: Call[None, None]) -> DeleteWebhookResponse:
        """`DELETE /v1/git/webhooks/{kind}/{project}`."""
        principal, project = call.principal, slugify(call.path["project"])
        principal.check_admin(f"project/{project}")
        await self._deps.webhooks.delete(principal, project, self._kind)
        return DeleteWebhookResponse(project=project, kind=self._kind)

    async def handle_delivery(self, call: Call[None, None]) -> Reply:
        """`POST /v1/git/{kind}/{tenant}/{project}`; once for each id of a delivery."""
        principal, _ = await self._find_webhook(call.path)
        if principal is None:
            raise UnsignedDelivery(self._kind)
        delivery_id = next(
            (
                call.headers[header_name]
                for header_name in DELIVERY_IDS
                if header_name in call.headers
            ),
            None,
        )

        async def answered() -> StoredReply:
            return render_reply(
                Reply(202, await self._store_delivery(call, principal, delivery_id))
            )

        if delivery_id is None:
            reply = await answered()
        else:
            request = (f"POST {self._kind} webhook", call.raw_body)
            key = f"{slugify(call.path['project'])}/{principal_key(principal, delivery_id)}"
            reply = await run_once(self._deps.idempotency, principal.tenant, key, request, answered)
        return Reply(reply.status, reply.body, reply.headers)

    async def _store_delivery(
        self, call: Call[None, None], principal: Principal, delivery: str | None
    ) -> WebhookDeliveryResponse:
        parsed = _parse_delivery(call)
        if isinstance(parsed, IgnoredDelivery):
            return WebhookDeliveryResponse(ignored=parsed.reason)
        deps, request = self._deps, None
        if isinstance(parsed, MergedRequest):
            change, request = parsed.change, parsed.message
            if parsed.is_from_elsewhere:
                events = await remember_merge_request(deps, principal, change, request)
                deps.publisher.publish_after_reply(call, principal.tenant, events)
                return WebhookDeliveryResponse(ignored=OTHER_REPOSITORY)
        else:
            change = parsed
        stored = await store_change(deps, principal, change, request)
        log.info("webhook_delivered", kind=self._kind, delivery=delivery, change=str(stored.id))
        deps.publisher.publish_after_reply(call, principal.tenant, stored.events)
        hints = [PARTIAL_PUSH_HINT] if change.partial else []
        return WebhookDeliveryResponse(
            event=stored.id, duplicate=stored.is_duplicate, hints=hints + stored.hints
        )

    async def read_delivery(self, request: IncomingRequest, chunks: AsyncIterator[bytes]) -> bytes:
        """Reads the body of a delivery and checks its signature.

        Only a body that may be signed for a webhook is kept. Raises `UnsignedDelivery` for an
        unknown address and a wrong secret alike, and after reading equally much.
        """
        principal, secret = await self._find_webhook(request.path_values)
        if self._kind == "github":
            signature = read_github_signature(secret, request.headers)
        else:
            signature = read_gitlab_signature(secret, request.headers, time.time())
        if signature is None:
            raise UnsignedDelivery(self._kind)

        async def hash_chunks() -> AsyncIterator[bytes]:
            async for chunk in chunks:
                signature.update(chunk)
                if principal is not None:
                    yield chunk

        address = "/".join((self._kind, *request.path_values.values()))
        body = await self._deps.unverified_bodies.collect(address, hash_chunks())
        if principal is None or not signature.is_valid():
            raise UnsignedDelivery(self._kind)
        return body

    async def _find_webhook(self, path: Mapping[str, str]) -> tuple[Principal | None, str]:
        """The principal and the secret of an address; a random secret for an unknown one."""
        project = slugify(path["project"])
        found = await self._deps.webhooks.find(path["tenant"], project, self._kind)
        return found or (None, secrets.token_urlsafe(32))


def _parse_delivery(call: Call[None, None]) -> GitChange | MergedRequest | IgnoredDelivery:
    """Parses the change of a delivery, by the event that its headers name."""
    event = call.headers.get("X-GitHub-Event") or call.headers.get("X-Gitlab-Event") or "push"
    body, project = _extract_json(call), slugify(call.path["project"])
    match event:
        case "push" | "Push Hook":
            return parse_push(parse_body(PushPayload, body), project)
        case "pull_request":
            return parse_pull_request(parse_body(PullRequestPayload, body), project)
        case "Merge Request Hook":
            return parse_merge_request(parse_body(MergeRequestPayload, body), project)
    return IgnoredDelivery("the webhook works" if event == "ping" else f"event {event}")


def _extract_json(call: Call[None, None]) -> bytes:
    """Extracts the body as JSON; GitHub sends it inside a form if its webhook is configured so."""
    if not call.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
        return call.raw_body
    payloads = parse_qs(call.raw_body.decode(errors="replace")).get("payload")
    if not payloads:
        raise InvalidInput(
            "payload", "is missing in the form; set the content type to application/json"
        )
    return payloads[0].encode()


def _build_webhook_body(principal: Principal, webhook: WebhookInfo) -> WebhookBody:
    return WebhookBody(
        project=webhook.project,
        kind="github" if webhook.kind == "github" else "gitlab",
        path=f"/v1/git/{webhook.kind}/{principal.tenant_name}/{webhook.project}",
        readable=webhook.readable,
        updated_by=webhook.updated_by,
        created_at=webhook.created,
        updated_at=webhook.updated,
    )
