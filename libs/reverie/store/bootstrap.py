"""Tenants and keys, made by an operator through the migration address."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from reverie.domain.access import Role, key_hash
from reverie.domain.errors import Invalid, Misconfigured, NotFound, Unavailable
from reverie.domain.fields import naming
from reverie.domain.ids import new_id
from reverie.domain.scopes import agent_name, parse_pattern, slug
from reverie.store.migrate import SCHEMA

DEFAULT_TENANT = "default"
_TENANT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True)
class NewKey:
    """A key to be made: its role, what it may read and write, whose it is."""

    label: str
    role: Role = Role.ADMIN
    reads: Sequence[str] = ("*",)
    writes: Sequence[str] = ("*",)
    project: str | None = None
    agent: str | None = None
    tenant: str = DEFAULT_TENANT


@dataclass(frozen=True)
class KeyRow:
    """A key as it is listed: never its text."""

    id: str
    tenant: str
    label: str
    role: str
    reads: list[str]
    writes: list[str]
    project: str | None
    agent: str | None
    created: datetime
    revoked: datetime | None


def create_key(url: str, new: NewKey, key: str | None = None) -> str:
    """Makes a key, and its tenant where that is missing; returns its text, shown this once.

    `key` gives the text; a key that stands already is left as it is. Names become slugs and grants
    canonical scopes. Raises `Invalid` naming the field.
    """
    new = checked(new)
    text = key or f"rv_{secrets.token_urlsafe(32)}"
    with _connect(url) as connection:
        tenant = _tenant(connection, new.tenant)
        connection.execute(
            "insert into api_key (tenant, id, hash, label, role, reads, writes, project, agent)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s, %s) on conflict do nothing",
            (
                tenant,
                new_id(),
                key_hash(text),
                new.label,
                new.role.value,
                list(new.reads),
                list(new.writes),
                new.project,
                new.agent,
            ),
        )
    return text


def ensure_key(url: str, key: str | None) -> str | None:
    """Makes the first key. Returns its text if one was made by chance; `key` gives the text.

    With `key`, that key stands afterwards; without, one is made only where there is none. Raises
    `Misconfigured` where the key given was revoked.
    """
    if key is not None and _is_revoked(url, key):
        raise Misconfigured("api_key", "this key was revoked: choose another")
    if key is None and any(row.revoked is None for row in list_keys(url)):
        return None
    return create_key(url, NewKey("first key"), key)


def list_keys(url: str) -> list[KeyRow]:
    """All keys of all tenants, oldest first."""
    keys: list[KeyRow] = []
    with _connect(url) as connection:
        for number, name in _tenants(connection):
            _enter(connection, number)
            found = connection.execute(
                "select id::text, label, role, reads, writes, project, agent, created, revoked"
                " from api_key where tenant = %s order by id",
                (number,),
            ).fetchall()
            keys.extend(KeyRow(tenant=name, **row) for row in found)
    return keys


def revoke_key(url: str, key_id: str) -> None:
    """Ends a key by its id, or by the id's last digits. Raises `NotFound`."""
    matches = [k for k in list_keys(url) if k.id.replace("-", "").endswith(key_id.replace("-", ""))]
    if len(matches) != 1:
        raise NotFound("key", key_id)
    with _connect(url) as connection:
        tenant = {name: number for number, name in _tenants(connection)}[matches[0].tenant]
        _enter(connection, tenant)
        connection.execute(
            "update api_key set revoked = coalesce(revoked, now()) where tenant = %s and id = %s",
            (tenant, matches[0].id),
        )


def checked(new: NewKey) -> NewKey:
    """The key with names and grants as they are compared. Raises `Invalid` naming the field."""
    _check_tenant(new.tenant)
    return replace(
        new,
        reads=_grants("reads", new.reads),
        writes=_grants("writes", new.writes),
        project=_name("project", new.project),
        agent=_name("agent", new.agent, agent_name),
    )


def _name(field: str, text: str | None, read: Callable[[str], str] = slug) -> str | None:
    with naming(field):
        return None if text is None else read(text)


def _grants(field: str, patterns: Sequence[str]) -> list[str]:
    with naming(field):
        return [parse_pattern(pattern) for pattern in patterns]


def _is_revoked(url: str, key: str) -> bool:
    sql = "select from api_key where tenant = %s and hash = %s and revoked is not null"
    with _connect(url) as connection:
        for number, _ in _tenants(connection):
            _enter(connection, number)
            if connection.execute(sql, (number, key_hash(key))).fetchone() is not None:
                return True
    return False


@contextmanager
def _connect(url: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
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


def tenant_names(url: str) -> list[tuple[int, str]]:
    """All tenants by number and name."""
    with _connect(url) as connection:
        return _tenants(connection)


def add_tenant(url: str, name: str) -> int:
    """The number of a tenant, made where it is missing. Raises `Invalid` naming the field."""
    _check_tenant(name)
    with _connect(url) as connection:
        return _tenant(connection, name)


def _check_tenant(name: str) -> None:
    if not _TENANT.fullmatch(name):
        raise Invalid("tenant", "must be 1 to 63 of a-z 0-9 _ -, and begin with a letter or digit")


def _tenant(connection: psycopg.Connection[dict[str, Any]], name: str) -> int:
    """The number of a tenant, made where it is missing, and entered."""
    connection.execute("insert into tenant (name) values (%s) on conflict do nothing", (name,))
    numbers = {found: number for number, found in _tenants(connection)}
    _enter(connection, numbers[name])
    return numbers[name]


def _tenants(connection: psycopg.Connection[dict[str, Any]]) -> list[tuple[int, str]]:
    rows = connection.execute("select id, name from tenant_names() order by id").fetchall()
    return [(row["id"], row["name"]) for row in rows]


def _enter(connection: psycopg.Connection[dict[str, Any]], tenant: int) -> None:
    connection.execute("select set_config('reverie.tenant', %s, true)", (str(tenant),))
