"""Routes for keys, projects, scopes, and deletion of a tenant."""

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
from reverie.domain.access.scopes import complete_grants, parse_scope, slugify
from reverie.domain.core.errors import InvalidInput
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import (
    CursorPosition,
    IdCursor,
    PageQuery,
    cut_page,
    decode_cursor,
)
from reverie.runtime.http.routes import RouteTable
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


routes = RouteTable[AdministrationDependencies]()


@routes.add("GET /v1/admin/keys")
async def list_keys(deps: AdministrationDependencies, call: Call[None, PageQuery]) -> KeyPage:
    """List the keys of the tenant, without their texts."""
    principal = _require_admin(call.principal)
    after = decode_cursor(call.query.cursor, IdCursor)
    rows = await deps.administration.list_keys(
        principal, after.id if after else None, call.query.limit + 1
    )
    items, next_cursor = cut_page(rows, call.query.limit, lambda key: IdCursor(id=key.id))
    return KeyPage(items=[_build_key_body(item) for item in items], next=next_cursor)


@routes.add("POST /v1/admin/keys", status=201, returns_secret=True)
async def create_key(
    deps: AdministrationDependencies, call: Call[CreateKeyRequest, None]
) -> CreatedKeyBody:
    """Create a key; its text is shown only once."""
    principal, body = _require_admin(call.principal), call.body
    reads, writes = complete_grants(body.reads, body.writes)
    names = [*reads, *writes, body.project, body.agent, body.user]
    if call.redactor.redact_value(names).count:
        raise InvalidInput("scope", "holds a secret: scopes are shown, name it otherwise")
    new_key = NewApiKey(
        call.redactor.redact(body.label).text,
        KeyRole(body.role),
        reads,
        writes,
        body.project,
        body.agent,
        body.user,
        principal.tenant_name,
        limits=_build_limits(body.limits),
    )
    key, text = await deps.administration.add_key(principal, new_key, body.expires_at)
    return CreatedKeyBody(**_build_key_body(key).model_dump(), key=text)


@routes.add("GET /v1/admin/keys/{id}")
async def get_key(deps: AdministrationDependencies, call: Call[None, None]) -> KeyUsageBody:
    """Get a key and the use of its limits."""
    principal = _require_admin(call.principal)
    key = await deps.administration.get_key(principal, await _key_id(deps, call))
    used = await deps.quotas.load_usage(principal.tenant, [key.id])
    return KeyUsageBody(**_build_key_body(key).model_dump(), used=used[key.id])


@routes.add("PATCH /v1/admin/keys/{id}")
async def update_key(
    deps: AdministrationDependencies, call: Call[UpdateKeyRequest, None]
) -> KeyBody:
    """Change the label, the expiry or the limits of a key."""
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
        await deps.administration.update_key(principal, await _key_id(deps, call), changes)
    )


@routes.add("POST /v1/admin/keys/{id}/rotate", returns_secret=True)
async def rotate_key(
    deps: AdministrationDependencies, call: Call[RotateKeyRequest, None]
) -> CreatedKeyBody:
    """Rotate a key; both texts work for a while."""
    principal, body = _require_admin(call.principal), call.body
    expiry = {"expires_at": body.expires_at} if "expires_at" in body.model_fields_set else {}
    key_id = await _key_id(deps, call)
    key, text = await deps.administration.rotate_key(
        principal, key_id, body.overlap_seconds, expiry
    )
    return CreatedKeyBody(**_build_key_body(key).model_dump(), key=text)


@routes.add("DELETE /v1/admin/keys/{id}")
async def revoke_key(deps: AdministrationDependencies, call: Call[None, None]) -> RevokeKeyResponse:
    """Revoke a key."""
    principal, key_id = _require_admin(call.principal), await _key_id(deps, call)
    await deps.administration.revoke_key(principal, key_id)
    return RevokeKeyResponse(id=key_id)


async def _key_id(deps: AdministrationDependencies, call: Call[Any, Any]) -> UUID:
    return await deps.short_ids.resolve(call.principal, "key", call.path["id"])


@routes.add("GET /v1/admin/projects")
async def list_projects(
    deps: AdministrationDependencies, call: Call[None, PageQuery]
) -> ProjectPage:
    """List projects with counts."""
    principal, limit = _require_admin(call.principal), call.query.limit
    after = decode_cursor(call.query.cursor, NameCursor)
    rows = await deps.administration.list_projects(
        principal, after.name if after else None, limit + 1
    )
    items, next_cursor = cut_page(rows, limit, lambda item: NameCursor(name=item.project))
    return ProjectPage(items=[ProjectBody(**vars(item)) for item in items], next=next_cursor)


@routes.add("GET /v1/admin/scopes")
async def list_scopes(deps: AdministrationDependencies, call: Call[None, PageQuery]) -> ScopePage:
    """List scopes with their memories by kind and by status."""
    principal, limit = _require_admin(call.principal), call.query.limit
    after = decode_cursor(call.query.cursor, NameCursor)
    rows = await deps.administration.list_scopes(
        principal, after.name if after else None, limit + 1
    )
    items, next_cursor = cut_page(rows, limit, lambda item: NameCursor(name=item.scope))
    return ScopePage(items=[ScopeBody(**vars(item)) for item in items], next=next_cursor)


@routes.add("DELETE /v1/admin/projects/{name}")
async def delete_project(
    deps: AdministrationDependencies, call: Call[None, DeleteQuery]
) -> DeletionResponse:
    """Delete a project with all its scopes."""
    scope = f"project/{slugify(call.path['name'])}"
    return await _delete_scopes(deps, call.principal, [scope, f"{scope}/*"], call.query.cursor)


@routes.add("DELETE /v1/admin/scopes")
async def delete_scope(
    deps: AdministrationDependencies, call: Call[None, ScopeQuery]
) -> DeletionResponse:
    """Delete a scope."""
    scope = parse_scope(call.query.scope)
    nested_patterns = [f"{scope}/*"] if call.query.include_descendants == "true" else []
    return await _delete_scopes(deps, call.principal, [scope, *nested_patterns], call.query.cursor)


async def _delete_scopes(
    deps: AdministrationDependencies, principal: Principal, patterns: list[str], cursor: str | None
) -> DeletionResponse:
    for pattern in patterns:
        principal.check_admin(pattern)
    cursor_cipher = await deps.administration.load_cursor_cipher(principal)
    deadline = time.monotonic() + deps.deletion_timeout
    start = cursor_cipher.decrypt(DELETION_CURSOR_PURPOSE, cursor, "cursor") if cursor else 0
    done, rows = await _run_until(deadline, deps.administration.delete_scope(principal, patterns))
    if not done:
        return DeletionResponse(done=False, next=cursor, rows=rows, messages={})
    erasure_target = ErasureTarget(
        patterns,
        find_whole_project(patterns),
        lambda ids: deps.administration.find_existing_ids(principal, ids),
    )
    messages = Counter[str]()
    async for erased, position in erase_scope_messages(
        deps.bus, principal.tenant_name, erasure_target, start
    ):
        messages += erased
        if time.monotonic() > deadline:
            next_cursor = cursor_cipher.encrypt(DELETION_CURSOR_PURPOSE, position)
            return DeletionResponse(
                done=False, next=next_cursor, rows=rows, messages=dict(messages)
            )
    return DeletionResponse(done=True, rows=rows, messages=dict(messages))


@routes.add("DELETE /v1/admin/tenant")
async def delete_tenant(
    deps: AdministrationDependencies, call: Call[DeleteTenantRequest, None]
) -> DeletionResponse:
    """Delete the caller's tenant with all its data."""
    principal = call.principal
    principal.check_tenant_deletion()
    if call.body.confirm != principal.tenant_name:
        raise InvalidInput("confirm", "is not the name of this key's tenant")
    before = await erase_tenant_messages(deps.bus, principal.tenant_name)
    deadline = time.monotonic() + deps.deletion_timeout
    done, rows = await _run_until(deadline, deps.administration.delete_tenant(principal))
    after = await erase_tenant_messages(deps.bus, principal.tenant_name)
    messages = {stream: before[stream] + after[stream] for stream in before}
    return DeletionResponse(done=done, rows=rows, messages=messages)


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
    return KeyBody(**vars(key), created_at=key.created, revoked_at=key.revoked)


def _build_limits(requested: KeyLimits | None) -> dict[str, int]:
    return requested.model_dump(exclude_none=True) if requested else {}
