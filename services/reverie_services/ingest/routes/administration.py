"""Routes for keys, projects, scopes, deletion of a tenant, and the audit log."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from reverie.bus.erasure import ErasureTarget, erase_scope_messages, erase_tenant_messages
from reverie.contracts.admin import (
    CreatedKeyBody,
    CreateKeyRequest,
    DeleteTenantRequest,
    DeletionResponse,
    KeyBody,
    KeyLimits,
    KeyPage,
    KeyUsageBody,
    ProjectBody,
    ProjectPage,
    RevokeKeyResponse,
    RotateKeyRequest,
    ScopeBody,
    ScopePage,
    UpdateKeyRequest,
)
from reverie.contracts.base import NonBlankStr
from reverie.domain.access.principals import KeyRole, Principal
from reverie.domain.access.scopes import parse_scope, slugify
from reverie.domain.core.errors import InvalidInput
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import (
    CursorPosition,
    IdCursor,
    PageQuery,
    cut_page,
    decode_cursor,
)
from reverie.runtime.http.routes import Route
from reverie.runtime.http.validation import QueryParams
from reverie.store.platform.administration import ApiKey, find_whole_project, sum_batches
from reverie.store.platform.api_keys import NewApiKey
from reverie.store.platform.event_visibility import MAX_CURSOR_LENGTH
from reverie_services.ingest.dependencies import AdministrationDependencies

DELETION_CURSOR_PURPOSE = "a place of a deletion"


class NameCursor(CursorPosition):
    """A cursor of a list in the order of names."""

    name: Annotated[str, Field(max_length=400)]


class DeleteQuery(QueryParams):
    """`cursor`: the position from which an incomplete deletion continues, from its answer."""

    cursor: Annotated[str, Field(min_length=1, max_length=MAX_CURSOR_LENGTH)] | None = None


class ScopeQuery(DeleteQuery):
    """The scope to delete, and whether to delete all below it."""

    scope: NonBlankStr
    include_descendants: Literal["true", "false"] = "false"


def build_administration_routes(deps: AdministrationDependencies) -> list[Route]:
    """The routes of administration. All of them require an admin's key."""
    handlers = AdministrationHandlers(deps)
    return [
        Route(
            "GET",
            "/v1/admin/keys",
            handlers.list_keys,
            query=PageQuery,
            response=KeyPage,
            summary="List the keys of the tenant, without their texts",
        ),
        Route(
            "POST",
            "/v1/admin/keys",
            handlers.create_key,
            CreateKeyRequest,
            response=CreatedKeyBody,
            status=201,
            returns_secret=True,
            summary="Create a key; its text is shown only once",
        ),
        Route(
            "GET",
            "/v1/admin/keys/{id}",
            handlers.get_key,
            response=KeyUsageBody,
            summary="Get a key and the use of its limits",
        ),
        Route(
            "PATCH",
            "/v1/admin/keys/{id}",
            handlers.update_key,
            UpdateKeyRequest,
            response=KeyBody,
            summary="Change the label, the expiry or the limits of a key",
        ),
        Route(
            "POST",
            "/v1/admin/keys/{id}/rotate",
            handlers.rotate_key,
            RotateKeyRequest,
            response=CreatedKeyBody,
            returns_secret=True,
            summary="Rotate a key; both texts work for a while",
        ),
        Route(
            "DELETE",
            "/v1/admin/keys/{id}",
            handlers.revoke_key,
            response=RevokeKeyResponse,
            summary="Revoke a key",
        ),
        Route(
            "GET",
            "/v1/admin/projects",
            handlers.list_projects,
            query=PageQuery,
            response=ProjectPage,
            summary="List projects with counts",
        ),
        Route(
            "DELETE",
            "/v1/admin/projects/{name}",
            handlers.delete_project,
            query=DeleteQuery,
            response=DeletionResponse,
            summary="Delete a project with all its scopes",
        ),
        Route(
            "GET",
            "/v1/admin/scopes",
            handlers.list_scopes,
            query=PageQuery,
            response=ScopePage,
            summary="List scopes with their memories by kind and by status",
        ),
        Route(
            "DELETE",
            "/v1/admin/scopes",
            handlers.delete_scope,
            query=ScopeQuery,
            response=DeletionResponse,
            summary="Delete a scope",
        ),
        Route(
            "DELETE",
            "/v1/admin/tenant",
            handlers.delete_tenant,
            DeleteTenantRequest,
            response=DeletionResponse,
            summary="Delete the caller's tenant with all its data",
        ),
    ]


class AdministrationHandlers:
    """Handlers of keys, projects, scopes and deletions."""

    def __init__(self, deps: AdministrationDependencies) -> None:
        self._deps = deps
        self._administration = deps.administration

    async def list_keys(self, call: Call[None, PageQuery]) -> KeyPage:
        """`GET /v1/admin/keys`."""
        principal = _require_admin(call.principal)
        after = decode_cursor(call.query.cursor, IdCursor)
        rows = await self._administration.list_keys(
            principal, after.id if after else None, call.query.limit + 1
        )
        items, next_cursor = cut_page(rows, call.query.limit, lambda key: IdCursor(id=key.id))
        return KeyPage(items=[_build_key_body(item) for item in items], next=next_cursor)

    async def create_key(self, call: Call[CreateKeyRequest, None]) -> CreatedKeyBody:
        """`POST /v1/admin/keys`."""
        principal, body = _require_admin(call.principal), call.body
        names = [*body.reads, *body.writes, body.project, body.agent]
        if call.redactor.redact_value(names).count:
            raise InvalidInput("scope", "holds a secret: scopes are shown, name it otherwise")
        new_key = NewApiKey(
            call.redactor.redact(body.label).text,
            KeyRole(body.role),
            body.reads,
            body.writes,
            body.project,
            body.agent,
            principal.tenant_name,
            limits=_build_limits(body.limits),
        )
        key, text = await self._administration.add_key(principal, new_key, body.expires_at)
        return CreatedKeyBody(**_build_key_body(key).model_dump(), key=text)

    async def get_key(self, call: Call[None, None]) -> KeyUsageBody:
        """`GET /v1/admin/keys/{id}`."""
        principal = _require_admin(call.principal)
        key = await self._administration.get_key(principal, await self._key_id(call))
        used = await self._deps.quotas.load_usage(principal.tenant, [key.id])
        return KeyUsageBody(**_build_key_body(key).model_dump(), used=used[key.id])

    async def update_key(self, call: Call[UpdateKeyRequest, None]) -> KeyBody:
        """`PATCH /v1/admin/keys/{id}`."""
        principal, body = _require_admin(call.principal), call.body
        changes: dict[str, Any] = {}
        if "label" in body.model_fields_set and body.label is not None:
            changes["label"] = call.redactor.redact(body.label).text
        if "expires_at" in body.model_fields_set:
            changes["expires_at"] = body.expires_at
        if "limits" in body.model_fields_set:
            changes["limits"] = _build_limits(body.limits)
        if not changes:
            raise InvalidInput("label", "name what to change: label, expires, limits")
        return _build_key_body(
            await self._administration.update_key(principal, await self._key_id(call), changes)
        )

    async def rotate_key(self, call: Call[RotateKeyRequest, None]) -> CreatedKeyBody:
        """`POST /v1/admin/keys/{id}/rotate`."""
        principal, body = _require_admin(call.principal), call.body
        expiry = {"expires_at": body.expires_at} if "expires_at" in body.model_fields_set else {}
        key_id = await self._key_id(call)
        key, text = await self._administration.rotate_key(
            principal, key_id, body.overlap_seconds, expiry
        )
        return CreatedKeyBody(**_build_key_body(key).model_dump(), key=text)

    async def revoke_key(self, call: Call[None, None]) -> RevokeKeyResponse:
        """`DELETE /v1/admin/keys/{id}`."""
        principal, key_id = _require_admin(call.principal), await self._key_id(call)
        await self._administration.revoke_key(principal, key_id)
        return RevokeKeyResponse(id=key_id)

    async def _key_id(self, call: Call[Any, Any]) -> UUID:
        return await self._deps.short_ids.resolve(call.principal, "key", call.path["id"])

    async def list_projects(self, call: Call[None, PageQuery]) -> ProjectPage:
        """`GET /v1/admin/projects`."""
        principal, limit = _require_admin(call.principal), call.query.limit
        after = decode_cursor(call.query.cursor, NameCursor)
        rows = await self._administration.list_projects(
            principal, after.name if after else None, limit + 1
        )
        items, next_cursor = cut_page(rows, limit, lambda item: NameCursor(name=item.project))
        return ProjectPage(items=[ProjectBody(**vars(item)) for item in items], next=next_cursor)

    async def list_scopes(self, call: Call[None, PageQuery]) -> ScopePage:
        """`GET /v1/admin/scopes`."""
        principal, limit = _require_admin(call.principal), call.query.limit
        after = decode_cursor(call.query.cursor, NameCursor)
        rows = await self._administration.list_scopes(
            principal, after.name if after else None, limit + 1
        )
        items, next_cursor = cut_page(rows, limit, lambda item: NameCursor(name=item.scope))
        return ScopePage(items=[ScopeBody(**vars(item)) for item in items], next=next_cursor)

    async def delete_project(self, call: Call[None, DeleteQuery]) -> DeletionResponse:
        """`DELETE /v1/admin/projects/{name}`."""
        scope = f"project/{slugify(call.path['name'])}"
        return await self._delete_scopes(call.principal, [scope, f"{scope}/*"], call.query.cursor)

    async def delete_scope(self, call: Call[None, ScopeQuery]) -> DeletionResponse:
        """`DELETE /v1/admin/scopes`."""
        scope = parse_scope(call.query.scope)
        nested_patterns = [f"{scope}/*"] if call.query.include_descendants == "true" else []
        return await self._delete_scopes(
            call.principal, [scope, *nested_patterns], call.query.cursor
        )

    async def _delete_scopes(
        self, principal: Principal, patterns: list[str], cursor: str | None
    ) -> DeletionResponse:
        for pattern in patterns:
            principal.check_admin(pattern)
        cursor_cipher = await self._administration.load_cursor_cipher(principal)
        deadline = self._compute_deadline()
        start = cursor_cipher.decrypt(DELETION_CURSOR_PURPOSE, cursor, "cursor") if cursor else 0
        done, rows = await _run_until(
            deadline, self._administration.delete_scope(principal, patterns)
        )
        if not done:
            return DeletionResponse(done=False, next=cursor, rows=rows, messages={})
        erasure_target = ErasureTarget(
            patterns,
            find_whole_project(patterns),
            lambda ids: self._administration.find_existing_ids(principal, ids),
        )
        messages = Counter[str]()
        async for erased, position in erase_scope_messages(
            self._deps.bus, principal.tenant_name, erasure_target, start
        ):
            messages += erased
            if time.monotonic() > deadline:
                next_cursor = cursor_cipher.encrypt(DELETION_CURSOR_PURPOSE, position)
                return DeletionResponse(
                    done=False, next=next_cursor, rows=rows, messages=dict(messages)
                )
        return DeletionResponse(done=True, rows=rows, messages=dict(messages))

    async def delete_tenant(self, call: Call[DeleteTenantRequest, None]) -> DeletionResponse:
        """`DELETE /v1/admin/tenant`."""
        principal = call.principal
        principal.check_tenant_deletion()
        if call.body.confirm != principal.tenant_name:
            raise InvalidInput("confirm", "is not the name of this key's tenant")
        before = await erase_tenant_messages(self._deps.bus, principal.tenant_name)
        done, rows = await _run_until(
            self._compute_deadline(), self._administration.delete_tenant(principal)
        )
        after = await erase_tenant_messages(self._deps.bus, principal.tenant_name)
        messages = {stream: before[stream] + after[stream] for stream in before}
        return DeletionResponse(done=done, rows=rows, messages=messages)

    def _compute_deadline(self) -> float:
        """When the time that a call has is over."""
        return time.monotonic() + self._deps.deletion_timeout


async def _run_until(
    deadline: float, batches: AsyncIterator[Counter[str]]
) -> tuple[bool, dict[str, int]]:
    """Whether the work ended in time, and what it deleted."""
    deleted: list[Counter[str]] = []
    is_tenant_deleted = False
    async for batch in batches:
        deleted.append(batch)
        # After the tenant is deleted nobody could repeat the call, so the rest is deleted too.
        is_tenant_deleted = is_tenant_deleted or "tenant" in batch
        if time.monotonic() > deadline and not is_tenant_deleted:
            return False, sum_batches(deleted)
    return True, sum_batches(deleted)


def _require_admin(principal: Principal) -> Principal:
    """The caller, who must hold an admin's key."""
    principal.check_role(KeyRole.ADMIN)
    return principal


def _build_key_body(key: ApiKey) -> KeyBody:
    return KeyBody(
        id=key.id,
        label=key.label,
        role=key.role,
        reads=key.reads,
        writes=key.writes,
        project=key.project,
        agent=key.agent,
        created_at=key.created,
        expires_at=key.expires_at,
        revoked_at=key.revoked,
        limits=dict(key.limits),
        previous_expires_at=key.previous_expires_at,
    )


def _build_limits(requested: KeyLimits | None) -> dict[str, int]:
    return requested.model_dump(exclude_none=True) if requested else {}
