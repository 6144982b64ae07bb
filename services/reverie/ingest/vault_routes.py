"""The vault over HTTP: key-value state that is never recalled."""

from __future__ import annotations

import json
import re
from typing import Annotated
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import Text
from reverie.contracts.vault import (
    VaultAdvice,
    VaultAdvised,
    VaultItem,
    VaultPage,
    VaultPut,
    VaultScrub,
    VaultValue,
    VaultWritten,
)
from reverie.domain.access import Principal
from reverie.domain.errors import Invalid, NotFound
from reverie.domain.known_secrets import LEAST, goes_unseen
from reverie.domain.redaction import redact, redact_value
from reverie.domain.scopes import parse_scope, scope_names
from reverie.domain.state import USE_VAULT
from reverie.ingest.accept import check_size
from reverie.ingest.parts import Parts
from reverie.runtime.body import Query
from reverie.runtime.calls import Call, Reply
from reverie.runtime.paging import (
    PageQuery,
    Position,
    ScopedQuery,
    cut_page,
    decode_cursor,
    encode_cursor,
)
from reverie.runtime.routes import Route
from reverie.store.vault import Busy, Vault, VaultEntry

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")
_TAKEN = frozenset({"advice", "scrub"})
_UNSEALED = (
    "no master key is set: give the services vault_key (base64 of 32 random bytes, "
    "as of `openssl rand -base64 32`)"
)
_SEARCHED = (
    "texts stored earlier are searched for it and lose it: GET /v1/vault/scrub says how far that is"
)
_SHORT = f"sealed, but too short to be taken out of texts: that needs {LEAST} characters"
_BARE = "holds a credential: send secret: true, and it is sealed"


class VaultQuery(Query):
    """Which scope; unset: the key's project, else global."""

    scope: Text | None = None


class ByPlace(Position):
    """A cursor in the order of scope and key."""

    scope: str
    key: str


class ByAdvice(Position):
    """A cursor among busy keys; then, with a `memory` or nothing, among memories that are state."""

    versions: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    scope: str = ""
    key: str = ""
    memory: UUID | None = None


def routes(parts: Parts) -> list[Route]:
    """The table of the vault."""
    doors = Doors(parts)
    path = "/v1/vault/{key}"
    return [
        Route("GET", "/v1/vault", doors.list, query=ScopedQuery, answer=VaultPage,
              summary="List entries without their values"),
        Route("GET", "/v1/vault/advice", doors.advice, query=PageQuery, answer=VaultAdvice,
              summary="Memories that belong into the vault"),
        Route("GET", "/v1/vault/scrub", doors.scrub, answer=VaultScrub,
              summary="How far stored texts were searched for secrets"),
        Route("PUT", path, doors.put, VaultPut, VaultQuery, VaultWritten,
              summary="Keep a value under a key"),
        Route("GET", path, doors.get, query=VaultQuery, answer=VaultValue,
              summary="Read a value"),
        Route("DELETE", path, doors.delete, query=VaultQuery, answer=VaultWritten,
              summary="Remove a value for good"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def put(self, call: Call[VaultPut, VaultQuery]) -> VaultWritten:
        """`PUT /v1/vault/{key}`."""
        who, body = call.principal, call.body
        key, scope = _key(call.path["key"]), _scope(who, call.query.scope)
        who.check_write(scope)
        text = json.dumps(body.value, ensure_ascii=False)
        check_size("value", text, self._parts.settings.content_limit, "content_limit")
        secret = await self._secret(who, scope, key, body)
        await self._parts.names.keep(who, scope_names(call.query.scope or scope))
        version = await self._parts.vault.put(who, scope, key, body.value, secret, body.version)
        hints = [_SHORT if goes_unseen(body.value) else _SEARCHED] if secret else []
        return VaultWritten(scope=scope, key=key, secret=secret, version=version, hints=hints)

    async def _secret(self, who: Principal, scope: str, key: str, body: VaultPut) -> bool:
        """Whether the value is to be sealed. Raises `Invalid` where it must be and is not."""
        secret = body.secret
        if secret is None:
            kept = await self._parts.vault.find(who, scope, key)
            secret = kept is not None and kept.secret
        if secret and not self._parts.vault.seals:
            raise Invalid("secret", _UNSEALED)
        if not secret and redact_value({key: body.value}).count:
            raise Invalid("value", _BARE)
        if body.value is None:
            raise Invalid("value", "is null: DELETE removes an entry")
        return secret

    async def get(self, call: Call[None, VaultQuery]) -> Reply:
        """`GET /v1/vault/{key}`."""
        who = call.principal
        scope = _scope(who, call.query.scope)
        entry, value = await self._parts.vault.get(who, scope, call.path["key"])
        body = VaultValue(**_item(entry).model_dump(), value=value)
        return Reply(body=body, headers={"ETag": f'"{entry.version}"', "Cache-Control": "no-store"})

    async def list(self, call: Call[None, ScopedQuery]) -> VaultPage:
        """`GET /v1/vault`."""
        who, query = call.principal, call.query
        after = decode_cursor(query.cursor, ByPlace)
        place = (after.scope, after.key) if after else ("", "")
        found = await self._parts.vault.page(who, query.readable(who), place, query.limit + 1)
        items, following = cut_page(
            found, query.limit, lambda one: ByPlace(scope=one.scope, key=one.key)
        )
        return VaultPage(items=[_item(one) for one in items], next=following)

    async def delete(self, call: Call[None, VaultQuery]) -> VaultWritten:
        """`DELETE /v1/vault/{key}`."""
        who, key = call.principal, call.path["key"]
        scope = _scope(who, call.query.scope)
        if not who.may_read(scope) and not who.may_write(scope):
            raise NotFound("vault entry", key)
        who.check_write(scope)
        version = await self._parts.vault.delete(who, scope, key)
        return VaultWritten(scope=scope, key=key, version=version, deleted=True)

    async def advice(self, call: Call[None, PageQuery]) -> VaultAdvice:
        """`GET /v1/vault/advice`."""
        who, limit = call.principal, call.query.limit
        after = decode_cursor(call.query.cursor, ByAdvice)
        found, following = await _busy(self._parts.vault, who, limit, after)
        if len(found) < limit:
            below = after.memory if after else None
            states, left = await self._parts.vault.states(who, limit - len(found), below)
            found += states
            following = ByAdvice(memory=left) if left else None
        items = [VaultAdvised(**vars(one), advice=USE_VAULT) for one in found]
        return VaultAdvice(items=items, next=following and encode_cursor(following))

    async def scrub(self, call: Call[None, None]) -> VaultScrub:
        """`GET /v1/vault/scrub`."""
        found = await self._parts.scrubbing.state(call.principal)
        if found is None:
            return VaultScrub(state="none")
        return VaultScrub(
            state="done" if found.finished else "waiting",
            wanted_at=found.wanted,
            finished_at=found.finished,
            passages=found.passages,
            looked=found.looked,
            scrubbed=found.scrubbed,
        )


async def _busy(
    vault: Vault, who: Principal, limit: int, after: ByAdvice | None
) -> tuple[list[Busy], ByAdvice | None]:
    """Busy keys after a place, and the place of the last: states come after all of them."""
    if after and not after.key:
        return [], None
    start = Busy(after.scope, after.key, after.versions) if after else None
    found = await vault.advice(who, limit, after=start)
    if not found:
        return [], None
    last = found[-1]
    return found, ByAdvice(versions=last.versions, scope=last.scope, key=last.key or "")


def _key(text: str) -> str:
    if not _KEY.fullmatch(text):
        raise Invalid("key", "must be 1 to 128 of A-Z a-z 0-9 _ . : -, and begin with none of .:-")
    if text in _TAKEN:
        raise Invalid("key", f"{text} is a name of the vault's own: choose another")
    if redact(text).count:
        raise Invalid("key", "holds a credential: keys are shown")
    return text


def _scope(who: Principal, text: str | None) -> str:
    return parse_scope(text) if text else who.default_scope()


def _item(entry: VaultEntry) -> VaultItem:
    return VaultItem(
        scope=entry.scope,
        key=entry.key,
        secret=entry.secret,
        readable=entry.readable,
        version=entry.version,
        by=entry.who,
        created_at=entry.created,
        updated_at=entry.updated,
    )
