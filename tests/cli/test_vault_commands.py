"""`reverie vault` on a running gateway."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.commands import command
from tests.support.stack import Stack, running_stack

OLD = base64.b64encode(b"o" * 32).decode()
NEW = base64.b64encode(b"n" * 32).decode()


@pytest.fixture
async def vault(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    async with running_stack(database, nats_url, model_home(), vault_key=OLD) as made:
        yield made


async def test_entries_can_be_set_shown_listed_removed_and_rotated(
    vault: Stack, tmp_path: Path
) -> None:
    env = {
        "REVERIE_API_KEY": vault.key,
        "REVERIE_RECALL_PORT": vault.url.rsplit(":", 1)[1],
        "REVERIE_DATABASE_URL": vault.admin_url,
        "REVERIE_VAULT_KEY": f"{NEW},{OLD}",
        "REVERIE_HOME": str(tmp_path / "home"),
    }

    async def run(*words: str, given: str = "") -> str:
        """What the command printed, or the exit code and the words of an error."""
        code, shown, error = await command(env, "vault", *words, given=given)
        return shown if code == 0 else f"{code}: {error}"

    kept = await run("set", "token", "--scope", "project/shop", given="seven tulips\n")
    assert kept == "token in project/shop: version 1, encrypted\n"
    plain = await run("set", "n", "--plain", "--as-json", "--json", given='{"n": 1}')
    assert (json.loads(plain)["secret"], json.loads(plain)["version"]) == (False, 1)
    assert await run("get", "token", "--scope", "project/shop") == "seven tulips\n"
    assert await run("get", "n") == '{"n": 1}\n'
    assert "is empty" in await run("set", "x", given="")
    assert "is not JSON" in await run("set", "x", "--as-json", given="{")
    assert "no vault entry" in (await run("get", "x")).lower()
    assert "version" in await run("set", "n", "--plain", "--version", "7", given="1")
    listed = json.loads(await run("list", "--json"))
    assert [(one["scope"], one["key"]) for one in listed] == [
        ("global", "n"),
        ("project/shop", "token"),
    ]
    assert "seven tulips" not in await run("list")
    assert json.loads(await run("redaction-status", "--json"))["requested_at"]
    assert await run("suggestions") == "No results.\n"
    assert json.loads(await run("rotate", "--json"))["rotated"] == 1
    assert (await run("rotate")).startswith("encrypted 0 values")
    assert (await run("delete", "n", given="n\n")).startswith("1: ")
    assert await run("delete", "n", "--yes") == "deleted n in global\n"
    env["REVERIE_VAULT_KEY"] = OLD
    assert (await run("rotate")).startswith("1: ")
    env["REVERIE_VAULT_KEY"] = ""
    assert "vault_key" in await run("rotate")
