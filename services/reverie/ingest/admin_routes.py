"""Administration over HTTP: keys, projects, scopes, the end of a tenant."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from reverie.bus.forget import Lost, forget_scopes, forget_tenant
from reverie.contracts.admin import (
    ChangeKey,
    Deleted,
    EndTenant,
    KeyBody,
    KeyPage,
    KeyUse,
    MadeKey,
    MakeKey,
    ProjectBody,
    ProjectPage,
    RevokedKey,
    RotateKey,
    ScopeBody,
    ScopePage,
    SetKeyLimits,
)
from reverie.contracts.base import Text
from reverie.domain.access import Principal, Role
from reverie.domain.errors import Invalid
from reverie.domain.redaction import redact
from reverie.domain.scopes import parse_scope, slug
from reverie.ingest.parts import Parts
from reverie.runtime.body import Query
from reverie.runtime.calls import Call
from reverie.runtime.paging import ById, PageQuery, Position, cut_page, decode_cursor
from reverie.runtime.routes import Route
from reverie.store.administration import Key, total, whole_project
from reverie.store.bootstrap import NewKey
from reverie.store.marks import LONGEST

PLACE = "a place of a deletion"


class ByName(Position):
    """A cursor of a list in the order of names."""

    name: Annotated[str, Field(max_length=400)]


class DeleteQuery(Query):
    """`cursor`: where a deletion that time ran out for goes on, as its answer said."""

    cursor: Annotated[str, Field(min_length=1, max_length=LONGEST)] | None = None


class ScopeQuery(DeleteQuery):
    """Which scope is deleted, and whether with all below it."""

    scope: Text
    below: Literal["true", "false"] = "false"


def routes(parts: Parts) -> list[Route]:
    """The table of administration. All of it wants an admin's key."""
    doors = Doors(parts)
    return [
        Route("GET", "/v1/admin/keys", doors.keys, query=PageQuery, answer=KeyPage,
              summary="List the keys of the tenant, without their text"),
        Route("POST", "/v1/admin/keys", doors.make_key, MakeKey, answer=MadeKey, status=201,
              shows=True, summary="Make a key; its text is shown this once"),
        Route("GET", "/v1/admin/keys/{id}", doors.key, answer=KeyUse,
              summary="A key, and what it used of its limits"),
        Route("PATCH", "/v1/admin/keys/{id}", doors.change_key, ChangeKey, answer=KeyBody,
              summary="Change the label, the end or the limits of a key"),
        Route("POST", "/v1/admin/keys/{id}/rotate", doors.rotate_key, RotateKey, answer=MadeKey,
              shows=True, summary="Give a key another text; for a while both work"),
        Route("DELETE", "/v1/admin/keys/{id}", doors.revoke_key, answer=RevokedKey,
              summary="End a key"),
        Route("GET", "/v1/admin/projects", doors.projects, query=PageQuery, answer=ProjectPage,
              summary="List projects with what lies in them"),
        Route("DELETE", "/v1/admin/projects/{name}", doors.delete_project,
              query=DeleteQuery, answer=Deleted,
              summary="Delete a project with everything in it and below it"),
        Route("GET", "/v1/admin/scopes", doors.scopes, query=PageQuery, answer=ScopePage,
              summary="List scopes with their memories by kind and by status"),
        Route("DELETE", "/v1/admin/scopes", doors.delete_scope, query=ScopeQuery, answer=Deleted,
              summary="Delete everything of a scope"),
        Route("DELETE", "/v1/admin/tenant", doors.end_tenant, EndTenant, answer=Deleted,
              summary="Delete the caller's tenant with everything in it"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._admin = parts.administration

    async def keys(self, call: Call[None, PageQuery]) -> KeyPage:
        """`GET /v1/admin/keys`."""
        who = _admin(call.principal)
        after = decode_cursor(call.query.cursor, ById)
        found = await self._admin.keys(who, after.id if after else None, call.query.limit + 1)
        items, following = cut_page(found, call.query.limit, lambda key: ById(id=key.id))
        return KeyPage(items=[_key_body(one) for one in items], next=following)

    async def make_key(self, call: Call[MakeKey, None]) -> MadeKey:
        """`POST /v1/admin/keys`."""
        who, body = _admin(call.principal), call.body
        new = NewKey(
            redact(body.label).text, Role(body.role), body.reads, body.writes,
            body.project, body.agent, who.tenant_name, limits=_limits(body.limits),
        )  # fmt: skip
        key, text = await self._admin.add_key(who, new, body.expires)
        return MadeKey(**_key_body(key).model_dump(), key=text)

    async def key(self, call: Call[None, None]) -> KeyUse:
        """`GET /v1/admin/keys/{id}`."""
        who = _admin(call.principal)
        key = await self._admin.key(who, await self._key_id(call))
        used = await self._parts.meters.used(who.tenant, [key.id])
        return KeyUse(**_key_body(key).model_dump(), used=used[key.id])

    async def change_key(self, call: Call[ChangeKey, None]) -> KeyBody:
        """`PATCH /v1/admin/keys/{id}`."""
        who, body = _admin(call.principal), call.body
        changes: dict[str, Any] = {}
        if "label" in body.model_fields_set and body.label is not None:
            changes["label"] = redact(body.label).text
        if "expires" in body.model_fields_set:
            changes["expires"] = body.expires
        if "limits" in body.model_fields_set:
            changes["limits"] = _limits(body.limits)
        if not changes:
            raise Invalid("label", "name what to change: label, expires, limits")
        return _key_body(await self._admin.change_key(who, await self._key_id(call), changes))

    async def rotate_key(self, call: Call[RotateKey, None]) -> MadeKey:
        """`POST /v1/admin/keys/{id}/rotate`."""
        who, body = _admin(call.principal), call.body
        end = {"expires": body.expires} if "expires" in body.model_fields_set else {}
        held = await self._key_id(call)
        key, text = await self._admin.rotate_key(who, held, body.overlap_seconds, end)
        return MadeKey(**_key_body(key).model_dump(), key=text)

    async def revoke_key(self, call: Call[None, None]) -> RevokedKey:
        """`DELETE /v1/admin/keys/{id}`."""
        who, key = _admin(call.principal), await self._key_id(call)
        await self._admin.revoke_key(who, key)
        return RevokedKey(id=key)

    async def _key_id(self, call: Call[Any, Any]) -> UUID:
        return await self._parts.ids.named(call.principal, "key", call.path["id"])

    async def projects(self, call: Call[None, PageQuery]) -> ProjectPage:
        """`GET /v1/admin/projects`."""
        who, limit = _admin(call.principal), call.query.limit
        after = decode_cursor(call.query.cursor, ByName)
        found = await self._admin.projects(who, after.name if after else None, limit + 1)
        items, following = cut_page(found, limit, lambda one: ByName(name=one.project))
        return ProjectPage(items=[ProjectBody(**vars(one)) for one in items], next=following)

    async def scopes(self, call: Call[None, PageQuery]) -> ScopePage:
        """`GET /v1/admin/scopes`."""
        who, limit = _admin(call.principal), call.query.limit
        after = decode_cursor(call.query.cursor, ByName)
        found = await self._admin.scopes(who, after.name if after else None, limit + 1)
        items, following = cut_page(found, limit, lambda one: ByName(name=one.scope))
        return ScopePage(items=[ScopeBody(**vars(one)) for one in items], next=following)

    async def delete_project(self, call: Call[None, DeleteQuery]) -> Deleted:
        """`DELETE /v1/admin/projects/{name}`."""
        scope = f"project/{slug(call.path['name'])}"
        return await self._delete(call.principal, [scope, f"{scope}/*"], call.query.cursor)

    async def delete_scope(self, call: Call[None, ScopeQuery]) -> Deleted:
        """`DELETE /v1/admin/scopes`."""
        scope = parse_scope(call.query.scope)
        below = [f"{scope}/*"] if call.query.below == "true" else []
        return await self._delete(call.principal, [scope, *below], call.query.cursor)

    async def _delete(self, who: Principal, patterns: list[str], cursor: str | None) -> Deleted:
        for pattern in patterns:
            who.check_admin(pattern)
        marks, until = await self._admin.marks(who), self._until()
        start = marks.open(PLACE, cursor, "cursor") if cursor else 0
        done, rows = await _within(until, self._admin.delete_scope(who, patterns))
        if not done:
            return Deleted(done=False, next=cursor, rows=rows, messages={})
        lost = Lost(patterns, whole_project(patterns), lambda ids: self._admin.standing(who, ids))
        place, messages = start, Counter[str]()
        async for gone, place in forget_scopes(self._parts.bus, who.tenant_name, lost, start):
            messages += gone
            if time.monotonic() > until:
                following = marks.seal(PLACE, place)
                return Deleted(done=False, next=following, rows=rows, messages=dict(messages))
        return Deleted(done=True, rows=rows, messages=dict(messages))

    async def end_tenant(self, call: Call[EndTenant, None]) -> Deleted:
        """`DELETE /v1/admin/tenant`."""
        who = call.principal
        who.check_end()
        if call.body.confirm != who.tenant_name:
            raise Invalid("confirm", "is not the name of this key's tenant")
        before = await forget_tenant(self._parts.bus, who.tenant_name)
        done, rows = await _within(self._until(), self._admin.delete_tenant(who))
        after = await forget_tenant(self._parts.bus, who.tenant_name)
        messages = {stream: before[stream] + after[stream] for stream in before}
        return Deleted(done=done, rows=rows, messages=messages)

    def _until(self) -> float:
        """When the time that a call has is over."""
        return time.monotonic() + self._parts.settings.delete_seconds


async def _within(
    until: float, batches: AsyncIterator[Counter[str]]
) -> tuple[bool, dict[str, int]]:
    """Whether the work ended in time, and what it deleted."""
    gone: list[Counter[str]] = []
    async for batch in batches:
        gone.append(batch)
        if time.monotonic() > until and not _irrevocable(gone):
            return False, total(gone)
    return True, total(gone)


def _irrevocable(gone: Sequence[Counter[str]]) -> bool:
    """Whether the tenant is gone, so that nobody could ask again: then the rest goes too."""
    return any("tenant" in batch for batch in gone)


def _admin(who: Principal) -> Principal:
    """The caller, who must hold an admin's key."""
    who.check_role(Role.ADMIN)
    return who


def _key_body(key: Key) -> KeyBody:
    return KeyBody(
        id=key.id,
        label=key.label,
        role=key.role,
        reads=key.reads,
        writes=key.writes,
        project=key.project,
        agent=key.agent,
        created_at=key.created,
        expires=key.expires,
        revoked_at=key.revoked,
        limits=dict(key.limits),
        old_until=key.old_until,
    )


def _limits(asked: SetKeyLimits | None) -> dict[str, int]:
    return asked.model_dump(exclude_none=True) if asked else {}
