"""Creates, changes and lists API keys and tenants as the schema owner; looks keys up."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, LiteralString

from reverie.domain.access.principals import KeyRole, Principal, combine_limits, hash_key
from reverie.domain.access.scopes import normalize_agent_name, parse_pattern, slugify
from reverie.domain.core.errors import (
    Conflict,
    InvalidInput,
    Misconfigured,
    NotFound,
    Unavailable,
    field_context,
)
from reverie.domain.core.ids import new_id
from reverie.store.db.roles import SCHEMA

if TYPE_CHECKING:
    import psycopg

    from reverie.store.db.database import Database

DEFAULT_TENANT = "default"
_TENANT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(eq=False)
class RetiredKey(Misconfigured):
    """{setting}: {reason}"""


@dataclass(frozen=True)
class NewApiKey:
    """A key to be created: its role, its read and write grants, its owner."""

    label: str
    role: KeyRole = KeyRole.ADMIN
    reads: Sequence[str] = ("*",)
    writes: Sequence[str] = ("*",)
    project: str | None = None
    agent: str | None = None
    user: str | None = None
    tenant: str = DEFAULT_TENANT
    expires_at: datetime | None = None
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TenantApiKey:
    """A key as it is listed: never its text."""

    id: str
    tenant: str
    label: str
    role: str
    reads: list[str]
    writes: list[str]
    project: str | None
    agent: str | None
    user: str | None
    created: datetime
    expires_at: datetime | None
    revoked: datetime | None
    limits: Mapping[str, int]
    previous_expires_at: datetime | None


def generate_key_text() -> str:
    """The text of a new key: 256 random bits."""
    return f"rv_{secrets.token_urlsafe(32)}"


def create_key(url: str, new: NewApiKey, key: str | None = None) -> str:
    """Creates a key, and its tenant if missing; returns its text, shown this once.

    `key` sets the text; an existing key is left unchanged. Names become slugs and grants canonical
    scopes. Raises `InvalidInput` naming the field.
    """
    with connect_as_owner(url) as connection:
        return insert_key(connection, normalize_key(new), key or generate_key_text())


def insert_key(connection: psycopg.Connection[dict[str, Any]], new: NewApiKey, text: str) -> str:
    """Stores a normalized key with its text, and its tenant if missing; returns the text."""
    tenant = _ensure_tenant(connection, new.tenant)
    connection.execute(
        "insert into api_key (tenant, id, hash, label, role, reads, writes, project, agent,"
        " user_name, expires_at, limits)"
        " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
        " on conflict do nothing",
        (
            tenant,
            new_id(),
            hash_key(text),
            new.label,
            new.role.value,
            list(new.reads),
            list(new.writes),
            new.project,
            new.agent,
            new.user,
            new.expires_at,
            json.dumps(dict(new.limits)),
        ),
    )
    return text


def ensure_key(url: str, key: str | None) -> str | None:
    """Ensures the first key. Returns its text if a random one was created; `key` sets the text.

    With `key`, that key exists afterwards; without, one is created only if there is none. Raises
    `RetiredKey` if the text belonged to a key that was rotated, revoked or deleted.
    """
    if key is not None:
        _check_not_retired(url, key)
    if key is None and any(row.revoked is None for row in list_keys(url)):
        return None
    return create_key(url, NewApiKey("first key"), key)


def list_keys(url: str) -> list[TenantApiKey]:
    """All keys of all tenants, oldest first."""
    keys: list[TenantApiKey] = []
    with connect_as_owner(url) as connection:
        for number, name in select_tenants(connection):
            set_tenant(connection, number)
            found = connection.execute(
                "select id::text, label, role, reads, writes, project, agent,"
                ' user_name as "user", created, expires_at,'
                " revoked, limits, case when previous_expires_at > now() then previous_expires_at"
                " end as previous_expires_at"
                " from api_key where tenant = %s order by id",
                (number,),
            ).fetchall()
            keys.extend(TenantApiKey(tenant=name, **row) for row in found)
    return keys


def revoke_key(url: str, key_id: str) -> None:
    """Ends a key by its id, or by the id's last digits. Raises `NotFound`."""
    _update_key(url, key_id, "revoked = coalesce(revoked, now())", ())


def update_key(url: str, key_id: str, changes: Mapping[str, Any]) -> None:
    """Changes `expires_at` or `limits` of a key, by its id or last digits. Raises `NotFound`."""
    sets = {"expires_at": "expires_at = %s", "limits": "limits = %s"}
    values = [json.dumps(v) if name == "limits" else v for name, v in changes.items()]
    _update_key(url, key_id, ", ".join(sets[name] for name in changes), values)


def rotate_key(url: str, key_id: str, overlap: float) -> str:
    """Gives a key another text, and returns it; the old one works `overlap` seconds more.

    Raises `NotFound`, and `Conflict` for one that was revoked.
    """
    row = find_key(url, key_id)
    if row.revoked is not None:
        raise Conflict("this key was revoked: make a new one")
    text = generate_key_text()
    sets = "old_hash = hash, previous_expires_at = now() + make_interval(secs => %s), hash = %s"
    _update_key(url, row.id, sets, (overlap, hash_key(text)))
    return text


def find_key(url: str, key_id: str) -> TenantApiKey:
    """A key by its id, or by the id's last digits. Raises `NotFound`."""
    digits = key_id.replace("-", "")
    found = [key for key in list_keys(url) if key.id.replace("-", "").endswith(digits)]
    if len(found) != 1:
        raise NotFound("key", key_id)
    return found[0]


def find_key_id(url: str, key: str) -> str | None:
    """The id of the key with this text; None if it is not valid."""
    with connect_as_owner(url) as connection:
        sql = "select id::text from find_key(%s)"
        row = connection.execute(sql, (hash_key(key),)).fetchone()
    return row["id"] if row else None


def _update_key(url: str, key_id: str, sets: LiteralString, values: Sequence[object]) -> None:
    row = find_key(url, key_id)
    with connect_as_owner(url) as connection:
        tenant = {name: number for number, name in select_tenants(connection)}[row.tenant]
        set_tenant(connection, tenant)
        sql = f"update api_key set {sets} where tenant = %s and id = %s"  # noqa: S608
        connection.execute(sql, (*values, tenant, row.id))


def set_tenant_limits(url: str, name: str, limits: Mapping[str, int] | None) -> dict[str, int]:
    """Sets an operator's limits for all keys of a tenant together; None changes nothing.

    Raises `NotFound`.
    """
    with connect_as_owner(url) as connection:
        number = {tenant_name: number for number, tenant_name in select_tenants(connection)}.get(
            name
        )
        if number is None:
            raise NotFound("tenant", name)
        set_tenant(connection, number)
        if limits is not None:
            connection.execute(
                "select set_tenant_limits(%s, %s)", (number, json.dumps(dict(limits)))
            )
        row = connection.execute("select limits from tenant where id = %s", (number,)).fetchone()
    return dict(row["limits"]) if row else {}


def normalize_key(new: NewApiKey) -> NewApiKey:
    """The key with names and grants as they are compared.

    Raises `InvalidInput` naming the field.
    """
    _check_tenant(new.tenant)
    return replace(
        new,
        reads=_normalize_grants("reads", new.reads),
        writes=_normalize_grants("writes", new.writes),
        project=_normalize_name("project", new.project),
        agent=_normalize_name("agent", new.agent, normalize_agent_name),
        user=_normalize_name("user", new.user),
    )


def _normalize_name(
    field: str, text: str | None, normalize: Callable[[str], str] = slugify
) -> str | None:
    with field_context(field):
        return None if text is None else normalize(text)


def _normalize_grants(field: str, patterns: Sequence[str]) -> list[str]:
    with field_context(field):
        return [parse_pattern(pattern) for pattern in patterns]


def _check_not_retired(url: str, key: str) -> None:
    with connect_as_owner(url) as connection:
        sql = "select from retired_key where hash = %s"
        if connection.execute(sql, (hash_key(key),)).fetchone() is None:
            return
        # While a rotation overlaps, clients still have this text.
        if find_key_id(url, key) is None:
            raise RetiredKey(
                "api_key",
                "this key was rotated, revoked or deleted and stays invalid: "
                "set REVERIE_API_KEY to a valid key, or unset it",
            )


@contextmanager
def connect_as_owner(url: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    # Here and not above: services look up keys by another driver.
    import psycopg
    from psycopg.rows import dict_row

    try:
        with psycopg.connect(
            url, row_factory=dict_row, connect_timeout=10, options=f"-csearch_path={SCHEMA},public"
        ) as connection:
            yield connection
    except psycopg.OperationalError as error:
        raise Unavailable("Postgres", "is it running, and is the address right?") from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedFunction) as error:
        raise Misconfigured(
            "database_url", "the database has no schema yet: run `reverie migrate`"
        ) from error


def list_tenants(url: str) -> list[tuple[int, str]]:
    """All tenants by number and name."""
    with connect_as_owner(url) as connection:
        return select_tenants(connection)


def ensure_tenant(url: str, name: str) -> int:
    """Returns a tenant's number; creates it if missing. Raises `InvalidInput` naming the field."""
    _check_tenant(name)
    with connect_as_owner(url) as connection:
        return _ensure_tenant(connection, name)


def _check_tenant(name: str) -> None:
    if not _TENANT_NAME.fullmatch(name):
        raise InvalidInput(
            "tenant", "must be 1 to 63 of a-z 0-9 _ -, and begin with a letter or digit"
        )


def _ensure_tenant(connection: psycopg.Connection[dict[str, Any]], name: str) -> int:
    """Returns the number of a tenant, created if missing, and makes its rows visible."""
    connection.execute("insert into tenant (name) values (%s) on conflict do nothing", (name,))
    numbers = {found: number for number, found in select_tenants(connection)}
    set_tenant(connection, numbers[name])
    return numbers[name]


def select_tenants(connection: psycopg.Connection[dict[str, Any]]) -> list[tuple[int, str]]:
    rows = connection.execute("select id, name from tenant_names() order by id").fetchall()
    return [(row["id"], row["name"]) for row in rows]


def set_tenant(connection: psycopg.Connection[dict[str, Any]], tenant: int) -> None:
    connection.execute("select set_config('reverie.tenant', %s, true)", (str(tenant),))


class ApiKeyStore:
    """Finds the principal behind a key."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def find_tenant(self, name: str) -> int | None:
        """The number of a tenant, for a token that names it."""
        number: int | None = await self._db.call("tenant_find", name)
        return number

    async def find(self, key_hash: bytes) -> Principal | None:
        """The holder of the key with this SHA-256, unless it is revoked or expired."""
        found = await self._db.fetch_rows("find_key", key_hash)
        if not found:
            return None
        row = found[0]
        return Principal(
            tenant=row["tenant"],
            tenant_name=row["tenant_name"],
            key_id=str(row["id"]),
            role=KeyRole(row["role"]),
            reads=tuple(row["reads"]),
            writes=tuple(row["writes"]),
            project=row["project"],
            agent=row["agent"],
            user=row["user_name"],
            limits=combine_limits(row["limits"]),
            tenant_limits=combine_limits(row["tenant_limits"], row["own_limits"]),
        )
