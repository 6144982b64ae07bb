"""Push webhooks over HTTP: their deliveries, and the secrets that these are signed with."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from urllib.parse import parse_qs

import structlog

from reverie.bus.relay import publish_now
from reverie.contracts.base import Name
from reverie.contracts.git import GitChange
from reverie.contracts.hooks import (
    Delivered,
    HookBody,
    HookKind,
    HookMade,
    HookPage,
    HookRemoved,
    SetHook,
)
from reverie.domain.access import Principal
from reverie.domain.errors import Invalid, Unauthenticated
from reverie.domain.idempotency import StoredReply
from reverie.domain.scopes import slug
from reverie.runtime.body import parse_body
from reverie.runtime.calls import Call, Reply, rendered
from reverie.runtime.idempotency import key_of, once
from reverie.runtime.paging import PageQuery, Position, cut_page, decode_cursor
from reverie.runtime.routes import Route
from reverie.staleness.intake import take
from reverie.staleness.parts import Parts
from reverie.staleness.pushes import (
    Push,
    Unheard,
    change_in,
    signed_by_github,
    signed_by_gitlab,
)
from reverie.staleness.requests import MergeRequest, PullRequest, pull_in, request_in
from reverie.store.hooks import Hook

log = structlog.get_logger("reverie.staleness")

DELIVERY_IDS = ("X-GitHub-Delivery", "Idempotency-Key", "webhook-id")
"""Headers that stay the same when a delivery is sent again."""
LEFT_OUT = (
    "the push had more commits than its webhook names; what the others changed is not known: "
    "publish the range with `reverie git push-event`"
)


@dataclass(eq=False)
class Unsigned(Unauthenticated):
    """the delivery is not signed with the secret of a {kind} webhook of this project"""

    kind: str


class HookQuery(PageQuery):
    """Of one project, or of all."""

    project: Name | None = None


class ByHook(Position):
    """A cursor in the order of project and kind."""

    project: str
    kind: str


def routes(parts: Parts) -> list[Route]:
    """The table of webhooks. Deliveries carry a signature in place of a key."""
    doors = Doors(parts)
    settings = parts.settings
    table = [
        Route("GET", "/v1/git/webhooks", doors.list, query=HookQuery, answer=HookPage,
              summary="List the push webhooks that are set up, without their secrets"),
    ]  # fmt: skip
    for kind, setting in (("github", doors.github), ("gitlab", doors.gitlab)):
        path = f"/v1/git/webhooks/{kind}/{{project}}"
        table += [
            Route("PUT", path, setting.put, SetHook, answer=HookMade, shows=True,
                  summary=f"Set the secret of a project's {kind} webhook; shown this once"),
            Route("DELETE", path, setting.remove, answer=HookRemoved,
                  summary=f"Refuse deliveries of a project's {kind} webhook from now on"),
            Route("POST", f"/v1/git/{kind}/{{tenant}}/{{project}}", setting.deliver,
                  answer=Delivered, status=202, open=True, limit=settings.git_limit,
                  limit_setting="git_limit", summary=f"Take a push that {kind} tells of"),
        ]  # fmt: skip
    return table


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.github = Forge(parts, "github")
        self.gitlab = Forge(parts, "gitlab")

    async def list(self, call: Call[None, HookQuery]) -> HookPage:
        """`GET /v1/git/webhooks`."""
        who, query = call.principal, call.query
        project = slug(query.project) if query.project else None
        who.check_admin(f"project/{project}" if project else "*")
        after = decode_cursor(query.cursor, ByHook)
        place = (after.project, after.kind) if after else ("", "")
        found = await self._parts.hooks.page(who, who.writes, project, query.limit + 1, place)
        items, following = cut_page(
            found, query.limit, lambda one: ByHook(project=one.project, kind=one.kind)
        )
        return HookPage(items=[_body(who, one) for one in items], next=following)


class Forge:
    """The webhooks of one forge."""

    def __init__(self, parts: Parts, kind: HookKind) -> None:
        self._parts = parts
        self._kind: HookKind = kind

    async def put(self, call: Call[SetHook, None]) -> HookMade:
        """`PUT /v1/git/webhooks/{kind}/{project}`."""
        who, project = call.principal, slug(call.path["project"])
        who.check_admin(f"project/{project}")
        if not self._parts.hooks.seals:
            raise Invalid("secret", "cannot be kept: set vault_key, which it is sealed under")
        secret = call.body.secret or secrets.token_urlsafe(32)
        made = await self._parts.hooks.put(who, project, self._kind, secret)
        return HookMade(**_body(who, made).model_dump(), secret=secret)

    async def remove(self, call: Call[None, None]) -> HookRemoved:
        """`DELETE /v1/git/webhooks/{kind}/{project}`."""
        who, project = call.principal, slug(call.path["project"])
        who.check_admin(f"project/{project}")
        await self._parts.hooks.delete(who, project, self._kind)
        return HookRemoved(project=project, kind=self._kind)

    async def deliver(self, call: Call[None, None]) -> Reply:
        """`POST /v1/git/{kind}/{tenant}/{project}`; once for each id of a delivery."""
        who = await self._sender(call)
        named = next((call.headers[one] for one in DELIVERY_IDS if one in call.headers), None)

        async def answered() -> StoredReply:
            return rendered(Reply(202, await self._delivered(call, who, named)))

        if named is None:
            reply = await answered()
        else:
            request = (f"POST {self._kind} webhook", call.raw)
            key = f"{slug(call.path['project'])}/{key_of(who, named)}"
            reply = await once(self._parts.idempotency, who.tenant, key, request, answered)
        return Reply(reply.status, reply.body, reply.headers)

    async def _delivered(
        self, call: Call[None, None], who: Principal, delivery: str | None
    ) -> Delivered:
        change = _heard(call)
        if isinstance(change, Unheard):
            return Delivered(ignored=change.reason)
        parts = self._parts
        stored, duplicate, events = await take(parts, who, change)
        log.info("push_delivered", kind=self._kind, delivery=delivery, change=str(stored))
        call.after(lambda: publish_now(parts.bus, parts.outbox, who.tenant, events))
        hints = [LEFT_OUT] if change.partial else []
        return Delivered(event=stored, duplicate=duplicate, hints=hints)

    async def _sender(self, call: Call[None, None]) -> Principal:
        """Who a delivery speaks for. Raises `Unsigned` for a wrong place and secret alike."""
        project = slug(call.path["project"])
        found = await self._parts.hooks.find(call.path["tenant"], project, self._kind)
        who, secret = found or (None, secrets.token_urlsafe(32))
        if self._kind == "github":
            signed = signed_by_github(secret, call.raw, call.headers)
        else:
            signed = signed_by_gitlab(secret, call.raw, call.headers, time.time())
        if who is None or not signed:
            raise Unsigned(self._kind)
        return who


def _heard(call: Call[None, None]) -> GitChange | Unheard:
    """The change that a delivery tells of, by the event that its headers name."""
    event = call.headers.get("X-GitHub-Event") or call.headers.get("X-Gitlab-Event") or "push"
    body, project = _json_of(call), slug(call.path["project"])
    match event:
        case "push" | "Push Hook":
            return change_in(parse_body(Push, body), project)
        case "pull_request":
            return pull_in(parse_body(PullRequest, body), project)
        case "Merge Request Hook":
            return request_in(parse_body(MergeRequest, body), project)
    return Unheard("the webhook works" if event == "ping" else f"event {event}")


def _json_of(call: Call[None, None]) -> bytes:
    """The body as JSON; GitHub sends a form with it inside where its webhook is set up so."""
    if not call.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
        return call.raw
    inside = parse_qs(call.raw.decode(errors="replace")).get("payload")
    if not inside:
        raise Invalid("payload", "is missing in the form; set the content type to application/json")
    return inside[0].encode()


def _body(who: Principal, hook: Hook) -> HookBody:
    return HookBody(
        project=hook.project,
        kind="github" if hook.kind == "github" else "gitlab",
        path=f"/v1/git/{hook.kind}/{who.tenant_name}/{hook.project}",
        readable=hook.readable,
        by=hook.who,
        created_at=hook.created,
        updated_at=hook.updated,
    )
