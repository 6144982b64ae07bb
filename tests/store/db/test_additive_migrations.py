"""Migrations only add, so that the previous release can run during an upgrade."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

TAKES = re.compile(
    r"^\s*(?:drop\s+(?:function|table|type|view)|revoke)\b"
    r"|\balter\s+(?:table|function|type)\b[^;]*\b(?:drop|rename|set\s+not\s+null|type)\b",
    re.IGNORECASE | re.MULTILINE,
)


def takes_away(sql: str) -> list[str]:
    """The beginnings of statements that services of the version before may stumble over."""
    plain = re.sub(r"--[^\n]*", "", sql)
    return [" ".join(found[0].split()) for found in TAKES.finditer(plain)]


def test_migrations_remove_nothing() -> None:
    for file in (files("reverie.store") / "migrations").iterdir():
        if file.name.endswith(".sql"):
            assert takes_away(file.read_text()) == [], f"{file.name} takes away what may be in use"


@pytest.mark.parametrize(
    "sql",
    [
        "drop function remember(int);",
        "create table a (b int);\ndrop table c;",
        "alter table memory drop column summary;",
        "alter table memory\n  rename column summary to gist;",
        "alter table memory alter column tier type text;",
        "alter table memory alter column tier set not null;",
        "revoke select on memory from reverie_app;",
    ],
)
def test_a_removal_is_detected(sql: str) -> None:
    assert takes_away(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "alter table memory add column mood text;",
        "drop index edge_in; create index edge_in on edge (dst);",
        "create or replace function f() returns int language sql as 'select 1';",
        "-- drop table nothing;\ncreate table mood (tenant int);",
        "grant select on mood to reverie_app;",
    ],
)
def test_a_purely_additive_migration_passes(sql: str) -> None:
    assert takes_away(sql) == []
