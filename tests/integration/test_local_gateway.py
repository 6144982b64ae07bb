"""Where a command finds the gateway of this machine, and what it does where none runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from reverie.cli import gateway
from reverie.cli.gateway import LocalGateway, Place, find
from reverie.domain.errors import Unavailable
from reverie.embedded.home import open_home, write_note, write_secret
from reverie.embedded.lock import only_one
from reverie.runtime.settings import Settings

NOWHERE = 9
"""A port at which nothing listens."""


async def test_one_that_is_being_started_is_waited_for_and_not_started_again(
    reverie_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "START_SECONDS", 0.3)
    home = open_home(reverie_home)
    settings = Settings(home=reverie_home, recall_port=NOWHERE)
    with only_one(home):
        with pytest.raises(Unavailable, match="still starting"):
            await LocalGateway(settings)("GET", "/ready")
        write_note(home, "up", {"pid": 1, "gateway": "http://127.0.0.1:9"})
        write_secret(home, "api_key", "rv_of_this_home")
        assert find(settings) == Place("http://127.0.0.1:9", "rv_of_this_home")
        mine = settings.model_copy(update={"api_key": SecretStr("rv_mine")})
        assert find(mine) == Place("http://127.0.0.1:9", "rv_mine")
    assert not (home.logs / gateway.LOG).exists()


async def test_the_key_of_a_home_is_not_sent_to_another_reverie(reverie_home: Path) -> None:
    write_secret(open_home(reverie_home), "api_key", "rv_of_this_home")
    alone = Settings(home=reverie_home, recall_port=NOWHERE, mcp_start=False)
    assert find(alone) is None
    with pytest.raises(Unavailable, match="ask the user to run `reverie up`"):
        await LocalGateway(alone)("GET", "/ready")
    keyed = alone.model_copy(update={"api_key": SecretStr("rv_mine")})
    assert find(keyed) is None
    elsewhere = keyed.model_copy(update={"gateway_url": "https://reverie.example/"})
    assert find(elsewhere) == Place("https://reverie.example", "rv_mine")
    keyless = elsewhere.model_copy(update={"api_key": None})
    with pytest.raises(Unavailable, match="REVERIE_API_KEY"):
        await LocalGateway(keyless)("GET", "/ready")


async def test_why_it_does_not_start_is_told(reverie_home: Path) -> None:
    settings = Settings(home=reverie_home, recall_port=NOWHERE)
    local = LocalGateway(settings, ["pool_max=many"])
    with pytest.raises(Unavailable, match="`reverie up` ended: pool_max:"):
        await local("GET", "/ready")
