"""`reverie vault` on a running gateway."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reverie.cli.app.main import app
from reverie.domain.core.errors import ReverieError
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Stack, running_stack

OLD = base64.b64encode(b"o" * 32).decode()
NEW = base64.b64encode(b"n" * 32).decode()


def _said(printed: str) -> str:
    """What the command printed, without the lines that the services log beside it."""
    return re.sub(r"(?m)^\d{4}-\d\d-\d\d \d\d:.*\n", "", printed)


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

    async def run(*words: str, given: str | None = None) -> Any:
        command = ["vault", *words]
        done = await asyncio.to_thread(CliRunner().invoke, app, command, input=given, env=env)
        if isinstance(done.exception, ReverieError):
            return str(done.exception)
        return _said(done.stdout) if done.exit_code == 0 else done.exit_code

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
    assert await run("delete", "n", given="n\n") == 1
    assert await run("delete", "n", "--yes") == "deleted n in global\n"
    env["REVERIE_VAULT_KEY"] = OLD
    assert await run("rotate") == 1
    env["REVERIE_VAULT_KEY"] = ""
    assert "vault_key" in await run("rotate")
