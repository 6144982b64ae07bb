"""Routes for the vault: key-value state that is never recalled."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import NonBlankStr
from reverie.contracts.vault import (
    RedactionBackfillStatus,
    VaultItem,
    VaultPage,
    VaultPutRequest,
    VaultSuggestion,
    VaultSuggestionPage,
    VaultValue,
    VaultWriteResponse,
)
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import parse_display_names, parse_scope
from reverie.domain.core.errors import InvalidInput, NotFound
from reverie.domain.core.memory import USE_VAULT_HINT
from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR, Redactor
from reverie.domain.redaction.vault_secrets import MIN_SECRET_LENGTH, count_unredactable
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.pagination import (
    CursorPosition,
    PageQuery,
    ScopedQuery,
    cut_page,
    decode_cursor,
    encode_cursor,
)
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import QueryParams, check_size
from reverie.store.vault.vault import StateCandidate, VaultEntryInfo, VaultStore
from reverie_services.ingest.dependencies import VaultDependencies

_KEY_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")

_RESERVED_KEYS = frozenset({"suggestions", "redaction-status"})

_BACKFILL_HINT = (
    "texts stored earlier are searched for it and redacted;"
    " GET /v1/vault/redaction-status shows the progress"
)

_WEAK_HINT = (
    "sealed, but not redacted in texts: it is too weak. A value is redacted that has at least"
    f" {MIN_SECRET_LENGTH} characters and is more than words, names, dates and short numbers"
)


class VaultQuery(QueryParams):
    """The scope; unset: the key's project, else global."""

    scope: NonBlankStr | None = None


class VaultDeleteQuery(VaultQuery):
    """`restore`: put the values of the entry back in the texts that they were redacted from."""

    restore: bool = False


class VaultCursor(CursorPosition):
    """A cursor in the order of scope and key."""

    scope: str
    key: str


class VaultAdviceCursor(CursorPosition):
    """A cursor among busy keys; then, with a `memory` or nothing, among memories that are state."""

    versions: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    scope: str = ""
    key: str = ""
    memory: UUID | None = None


routes = RouteTable[VaultDependencies]()


@routes.add("PUT /v1/vault/{key}")
async def put_value(
    deps: VaultDependencies, call: Call[VaultPutRequest, VaultQuery]
) -> VaultWriteResponse:
    """Store an entry in the vault."""
    principal, body = call.principal, call.body
    key = _check_key(call.path["key"], call.redactor)
    scope = _resolve_scope(principal, call.query.scope, call.redactor)
    principal.check_write(scope)
    text = json.dumps(body.value, ensure_ascii=False)
    check_size("value", text, deps.value_limit, "content_limit")
    secret = await _check_secret(deps, call, scope, key)
    await deps.scope_names.save(principal, parse_display_names(call.query.scope or scope))
    version = await deps.vault.put(principal, scope, key, body.value, secret, body.version)
    hints = _describe_redaction(body.value) if secret else []
    return VaultWriteResponse(scope=scope, key=key, secret=secret, version=version, hints=hints)


async def _check_secret(
    deps: VaultDependencies, call: Call[VaultPutRequest, VaultQuery], scope: str, key: str
) -> bool:
    """Returns whether the value is to be sealed.

    Raises `InvalidInput` if it must be and is not.
    """
    body, secret = call.body, call.body.secret
    if secret is None:
        existing = await deps.vault.find(call.principal, scope, key)
        secret = existing is not None and existing.secret
    if secret and not deps.vault.can_encrypt:
        raise InvalidInput(
            "secret",
            "no master key is set: give the services vault_key (base64 of 32 random bytes, "
            "as of `openssl rand -base64 32`)",
        )
    if not secret and call.redactor.within(scope).redact_value({key: body.value}).count:
        raise InvalidInput("value", "holds a credential: send secret: true, and it is sealed")
    if body.value is None:
        raise InvalidInput("value", "is null: DELETE removes an entry")
    return secret


@routes.add("GET /v1/vault/{key}", response=VaultValue)
async def get_value(deps: VaultDependencies, call: Call[None, VaultQuery]) -> Reply:
    """Get an entry of the vault."""
    principal = call.principal
    scope = _resolve_scope(principal, call.query.scope)
    entry, value = await deps.vault.get(principal, scope, call.path["key"])
    body = VaultValue(**_build_item_body(entry).model_dump(), value=value)
    return Reply(body=body, headers={"ETag": f'"{entry.version}"', "Cache-Control": "no-store"})


@routes.add("GET /v1/vault")
async def list_entries(deps: VaultDependencies, call: Call[None, ScopedQuery]) -> VaultPage:
    """List the entries of the vault, without their values."""
    principal, query = call.principal, call.query
    after = decode_cursor(query.cursor, VaultCursor)
    position = (after.scope, after.key) if after else ("", "")
    rows = await deps.vault.page(
        principal, query.readable_scope(principal), position, query.limit + 1
    )
    items, next_cursor = cut_page(
        rows, query.limit, lambda item: VaultCursor(scope=item.scope, key=item.key)
    )
    return VaultPage(items=[_build_item_body(item) for item in items], next=next_cursor)


@routes.add("DELETE /v1/vault/{key}")
async def delete_value(
    deps: VaultDependencies, call: Call[None, VaultDeleteQuery]
) -> VaultWriteResponse:
    """Delete an entry of the vault."""
    principal, key, restore = call.principal, call.path["key"], call.query.restore
    scope = _resolve_scope(principal, call.query.scope)
    if not principal.may_read(scope) and not principal.may_write(scope):
        raise NotFound("vault entry", key)
    principal.check_write(scope)
    if restore:
        # The values become readable wherever they were redacted.
        principal.check_admin("*")
    version = await deps.vault.delete(principal, scope, key, restore)
    hint = "its values are being put back in the texts that they were redacted from"
    hints = [hint] if restore else []
    return VaultWriteResponse(scope=scope, key=key, version=version, deleted=True, hints=hints)


@routes.add("GET /v1/vault/suggestions")
async def list_advice(deps: VaultDependencies, call: Call[None, PageQuery]) -> VaultSuggestionPage:
    """List memories that belong in the vault."""
    principal, limit = call.principal, call.query.limit
    after = decode_cursor(call.query.cursor, VaultAdviceCursor)
    candidates, next_cursor = await _list_frequent_keys(deps.vault, principal, limit, after)
    if len(candidates) < limit:
        before = after.memory if after else None
        states, last_id = await deps.vault.list_state_memories(
            principal, limit - len(candidates), before
        )
        candidates += states
        next_cursor = VaultAdviceCursor(memory=last_id) if last_id else None
    items = [VaultSuggestion(**vars(candidate), advice=USE_VAULT_HINT) for candidate in candidates]
    return VaultSuggestionPage(items=items, next=next_cursor and encode_cursor(next_cursor))


@routes.add("GET /v1/vault/redaction-status")
async def get_redaction_status(
    deps: VaultDependencies, call: Call[None, None]
) -> RedactionBackfillStatus:
    """Get the progress of redacting stored texts."""
    run = await deps.redaction_backfill.load_state(call.principal)
    if run is None:
        return RedactionBackfillStatus(state="none")
    return RedactionBackfillStatus(
        state="done" if run.finished else "waiting",
        requested_at=run.requested_at,
        finished_at=run.finished,
        passes=run.passes,
        # Of scopes that the key may not read, counts would tell whether a guess is right.
        examined=run.examined if call.principal.may_read("*") else None,
        redacted=run.redacted if call.principal.may_read("*") else None,
    )


async def _list_frequent_keys(
    vault: VaultStore, principal: Principal, limit: int, after: VaultAdviceCursor | None
) -> tuple[list[StateCandidate], VaultAdviceCursor | None]:
    """Busy keys after a place, and the place of the last: states come after all of them."""
    if after and not after.key:
        return [], None
    position = StateCandidate(after.scope, after.key, after.versions) if after else None
    keys = await vault.list_frequent_keys(principal, limit, after=position)
    if not keys:
        return [], None
    last = keys[-1]
    return keys, VaultAdviceCursor(versions=last.versions, scope=last.scope, key=last.key or "")


def _describe_redaction(value: Any) -> list[str]:
    weak, total = count_unredactable(value)
    if weak == total:
        return [_WEAK_HINT]
    if weak:
        return [_BACKFILL_HINT, f"{weak} of its {total} texts are {_WEAK_HINT}"]
    return [_BACKFILL_HINT]


def _check_key(text: str, redactor: Redactor) -> str:
    if not _KEY_PATTERN.fullmatch(text):
        raise InvalidInput(
            "key", "must be 1 to 128 of A-Z a-z 0-9 _ . : -, and begin with none of .:-"
        )
    if text in _RESERVED_KEYS:
        raise InvalidInput("key", f"{text} is a name of the vault's own: choose another")
    if redactor.redact(text).count:
        raise InvalidInput("key", "holds a credential: keys are shown")
    return text


def _resolve_scope(
    principal: Principal, text: str | None, redactor: Redactor = CREDENTIAL_REDACTOR
) -> str:
    return parse_scope(text, redactor) if text else principal.default_scope()


def _build_item_body(entry: VaultEntryInfo) -> VaultItem:
    return VaultItem(
        **vars(entry),
        updated_by=entry.written_by,
        created_at=entry.created,
        updated_at=entry.updated,
    )
