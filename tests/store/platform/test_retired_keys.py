"""The text of a rotated, revoked or deleted key never works again, whatever an operator runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reverie.embedded import home
from reverie.embedded.home import open_home
from reverie.embedded.servers.backends import PostgresBackend
from reverie.embedded.servers.binaries import find_postgres_bin
from reverie.runtime.settings.settings import Settings
from reverie.store.db.dump import dump, restore
from reverie.store.platform.api_keys import (
    NewApiKey,
    RetiredKey,
    create_key,
    ensure_key,
    find_key_id,
    list_keys,
    revoke_key,
    rotate_key,
)
from reverie.testing.servers import DatabaseUrls
from tests.support.commands import command
from tests.support.stack import Stack

FIRST = "rv_" + "f" * 43


async def _status(alone: Stack, text: str) -> int:
    return (await alone.call("GET", "/v1/memories", key=text)).status


def _first_id(alone: Stack, first: str = FIRST) -> str:
    ensure_key(alone.admin_url, first)
    found = find_key_id(alone.admin_url, first)
    assert found is not None
    return found


def _env(alone: Stack, tmp_path: Path, first: str = FIRST) -> dict[str, str]:
    return {
        "REVERIE_DATABASE_URL": alone.admin_url,
        "REVERIE_API_KEY": first,
        "REVERIE_HOME": str(tmp_path),
    }


async def test_a_retired_first_key_stays_invalid_and_a_migration_or_a_start_goes_on(
    alone: Stack, tmp_path: Path
) -> None:
    for way, text in (("rotated", "r"), ("revoked", "v"), ("deleted", "d")):
        first = "rv_" + text * 43
        key = _first_id(alone, first)
        if way == "rotated":
            path = f"/v1/admin/keys/{key}/rotate"
            rotated = await alone.call("POST", path, {"overlap_seconds": 0})
            assert await _status(alone, rotated.body["key"]) == 200
        elif way == "revoked":
            await alone.call("DELETE", f"/v1/admin/keys/{key}")
        else:
            gone = await alone.call("DELETE", "/v1/admin/tenant", {"confirm": "default"}, first)
            assert gone.status == 200, gone
        assert await _status(alone, first) == 401
        for _ in range(2):
            code, _, err = await command(_env(alone, tmp_path, first), "migrate")
            assert (code, "warning: api_key: this key was" in err) == (0, True), err
        with pytest.raises(RetiredKey, match="api_key: this key was rotated, revoked or deleted"):
            ensure_key(alone.admin_url, first)
        before = len(list_keys(alone.admin_url))
        settings: dict[str, Any] = {"home": tmp_path, "database_url": alone.admin_url}
        backend = PostgresBackend(Settings(**settings, api_key=first), open_home(tmp_path))
        backend.admin_url = alone.admin_url
        warning = backend.ensure_key().warning or ""
        assert warning.startswith("api_key: this key was rotated, revoked or deleted")
        assert len(list_keys(alone.admin_url)) == before
        assert await _status(alone, first) == 401


async def test_a_text_within_its_overlap_works_and_needs_no_warning(
    alone: Stack, tmp_path: Path
) -> None:
    newer = rotate_key(alone.admin_url, _first_id(alone), 3600)
    code, _, err = await command(_env(alone, tmp_path), "migrate")
    assert (code, "warning" in err) == (0, False)
    assert [await _status(alone, text) for text in (FIRST, newer)] == [200, 200]
    # The next rotation ends the overlap of the one before.
    newest = rotate_key(alone.admin_url, _first_id(alone), 0)
    found = [await _status(alone, text) for text in (FIRST, newer, newest)]
    assert found == [401, 401, 200]


async def test_a_rotation_on_this_machine_replaces_the_stored_text(
    alone: Stack, tmp_path: Path
) -> None:
    place = open_home(tmp_path)
    home.write_secret(place, "api_key", FIRST)
    env = {name: text for name, text in _env(alone, tmp_path).items() if "KEY" not in name}
    first = _first_id(alone)
    code, out, _ = await command(env, "key", "rotate", first, "--overlap", "0s")
    assert (code, home.read_secret(place, "api_key")) == (0, out.strip())
    assert [await _status(alone, text) for text in (FIRST, out.strip())] == [401, 200]
    # Another key's rotation leaves the file alone.
    other = next(key.id for key in list_keys(alone.admin_url) if key.id != first)
    await command(env, "key", "rotate", other)
    assert home.read_secret(place, "api_key") == out.strip()


def test_a_restored_backup_brings_no_retired_text_back(
    database: DatabaseUrls, tmp_path: Path
) -> None:
    url, programs = database.admin_url, find_postgres_bin()
    revoked = create_key(url, NewApiKey("revoked"))
    overlapping = create_key(url, NewApiKey("overlapping"))
    overlap_id = find_key_id(url, overlapping)
    assert overlap_id is not None
    middle = rotate_key(url, overlap_id, 3600)
    ensure_key(url, FIRST)
    dump(url, programs, tmp_path / "before.dump")
    first_id, revoked_id = find_key_id(url, FIRST), find_key_id(url, revoked)
    assert first_id is not None
    assert revoked_id is not None
    current = rotate_key(url, first_id, 0)
    revoke_key(url, revoked_id)
    last = rotate_key(url, overlap_id, 0)
    restore(url, programs, tmp_path / "before.dump")
    texts = (FIRST, revoked, overlapping, middle, current, last)
    assert {text for text in texts if find_key_id(url, text)} == {current, last}
    with pytest.raises(RetiredKey):
        ensure_key(url, FIRST)
