"""Creating, listing and revoking API keys in the store."""

from __future__ import annotations

from typing import Any

import pytest

from reverie.domain.core.errors import InvalidInput, Misconfigured, NotFound
from reverie.store.platform.api_keys import NewApiKey, create_key, ensure_key, list_keys, revoke_key
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import admin_rows

REFUSED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tenant", {"tenant": "No Such"}),
    ("tenant", {"tenant": "a" * 64}),
    ("tenant", {"tenant": "one\n"}),
    ("reads", {"reads": ["global", "everything"]}),
    ("reads", {"reads": ["**"]}),
    ("writes", {"writes": ["project/p*"]}),
    ("writes", {"writes": ["bad/*"]}),
    ("writes", {"writes": ["/*"]}),
    ("project", {"project": " "}),
    ("agent", {"agent": ""}),
)


def test_a_key_whose_grants_match_nothing_is_refused_by_the_field(database: DatabaseUrls) -> None:
    for field, fields in REFUSED:
        with pytest.raises(InvalidInput) as refused:
            create_key(database.admin_url, NewApiKey("key", **fields))
        assert refused.value.field == field, fields
    assert admin_rows(database.admin_url, "select count(*) from tenant") == [(0,)]


def test_names_and_grants_are_stored_in_canonical_form(database: DatabaseUrls) -> None:
    grants = ["*", "global", "VP/ann", "project/*", "vp/*", "agent/a/sub/*", "topic/a/b/*"]
    plain = ["*", "global", "agent/ann", "project/*", "agent/*", "agent/a/sub/*", "topic/a/b/*"]
    new = NewApiKey("key", reads=grants, writes=("project/p/*",), project="Shop", agent="Ann")
    create_key(database.admin_url, new)
    [row] = list_keys(database.admin_url)
    assert (row.reads, row.writes) == (plain, ["project/p/*"])
    assert row.project is not None
    assert row.project.startswith("shop-")
    assert row.agent is not None
    assert row.agent.startswith("ann-")


def test_a_key_is_revoked_once_and_no_other(database: DatabaseUrls) -> None:
    for label in ("a", "b"):
        create_key(database.admin_url, NewApiKey(label, tenant="one"))
    create_key(database.admin_url, NewApiKey("c", tenant="two"))
    ended = next(row for row in list_keys(database.admin_url) if row.label == "c")
    revoke_key(database.admin_url, ended.id)
    first = {row.label: row.revoked for row in list_keys(database.admin_url)}
    assert [label for label, revoked in first.items() if revoked] == ["c"]
    revoke_key(database.admin_url, ended.id)
    assert {row.label: row.revoked for row in list_keys(database.admin_url)} == first
    with pytest.raises(NotFound):
        revoke_key(database.admin_url, "0123")


def test_a_revoked_first_key_is_refused(database: DatabaseUrls) -> None:
    assert ensure_key(database.admin_url, "given") == "given"
    assert ensure_key(database.admin_url, "given") == "given"
    [row] = list_keys(database.admin_url)
    revoke_key(database.admin_url, row.id)
    with pytest.raises(Misconfigured, match="api_key: this key was rotated, revoked"):
        ensure_key(database.admin_url, "given")


def test_without_a_schema_the_key_commands_point_to_the_migration(
    empty_database: DatabaseUrls,
) -> None:
    url = empty_database.admin_url
    for act in (
        lambda: create_key(url, NewApiKey("a")),
        lambda: ensure_key(url, None),
        lambda: list_keys(url),
        lambda: revoke_key(url, "x"),
    ):
        with pytest.raises(Misconfigured, match="reverie migrate"):
            act()
