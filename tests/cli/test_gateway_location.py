"""How commands, hooks and `reverie mcp` find the gateway, and wait for one that starts."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from reverie.agent.gateway.location import locate_from_environment
from reverie.cli.app import local_gateway
from reverie.cli.app.gateway_search import find_gateway
from reverie.cli.app.gateway_settings import read_raw_settings, resolve_endpoint
from reverie.cli.app.local_gateway import LocalGateway
from reverie.domain.core.errors import Misconfigured, ReverieError, Unavailable
from reverie.embedded.home import open_home, write_run_file, write_secret
from reverie.embedded.lock import hold_home_lock
from reverie.runtime.settings.loading import load_settings
from reverie.runtime.settings.settings import Settings

HERE, KEPT = "http://127.0.0.1:3499", "rv_of_this_home"
THERE, OWN = "https://reverie.example", "rv_of_the_team"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """A home folder on which a Reverie runs."""
    for folder in ("run", "secrets"):
        (tmp_path / folder).mkdir()
    (tmp_path / "secrets" / "api_key").write_text(KEPT)
    (tmp_path / "run" / "up.json").write_text(f'{{"gateway": "{HERE}"}}')
    with (tmp_path / "run" / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tmp_path


@pytest.mark.parametrize(
    ("url", "key", "found"),
    [
        ("", "", (HERE, KEPT)),
        ("", OWN, (HERE, OWN)),
        (HERE, "", (HERE, KEPT)),
        (HERE, OWN, (HERE, OWN)),
        (f"{THERE}/", OWN, (THERE, OWN)),
        (THERE, "", None),
    ],
)
def test_explicit_settings_take_precedence_over_a_running_gateway(
    running: Path, url: str, key: str, found: tuple[str, str] | None
) -> None:
    said = {name: value for name, value in (("gateway_url", url), ("api_key", key)) if value}
    try:
        command = resolve_endpoint({**said, "home": str(running)})
    except ReverieError:
        command = None
    told = {f"REVERIE_{name.upper()}": value for name, value in said.items()}
    hook = locate_from_environment({**told, "REVERIE_HOME": str(running)})[0]
    assert command == found
    assert ((hook.url, hook.key) if hook.key else None) == found
    assert found_at(load_settings({**said, "home": running})) == found


def found_at(settings: Settings) -> tuple[str, str] | None:
    """The URL and the key that `reverie mcp` uses."""
    location = find_gateway(settings)
    return (location.url, location.key) if location else None


NOWHERE = 9
"""A port at which nothing listens."""


async def test_a_gateway_that_is_starting_is_awaited_and_not_started_again(
    reverie_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_gateway, "START_TIMEOUT", 0.3)
    home = open_home(reverie_home)
    settings = Settings(home=reverie_home, recall_port=NOWHERE)
    with hold_home_lock(home):
        with pytest.raises(Unavailable, match="still starting"):
            await LocalGateway(settings)("GET", "/ready")
        write_run_file(home, "up", {"pid": 1, "gateway": "http://127.0.0.1:9"})
        write_secret(home, "api_key", "rv_of_this_home")
        assert found_at(settings) == ("http://127.0.0.1:9", "rv_of_this_home")
        mine = settings.model_copy(update={"api_key": SecretStr("rv_mine")})
        assert found_at(mine) == ("http://127.0.0.1:9", "rv_mine")
    assert not (home.logs / local_gateway.UP_LOG).exists()


async def test_a_failed_start_is_explained(reverie_home: Path) -> None:
    settings = Settings(home=reverie_home, recall_port=NOWHERE)
    local = LocalGateway(settings, ["pool_max=many"])
    with pytest.raises(Unavailable, match="`reverie up` ended: pool_max:"):
        await local("GET", "/ready")


@pytest.mark.parametrize("end", ["pass", "import os; os.kill(os.getpid(), 9)"])
def test_a_stopped_start_is_not_explained_by_an_earlier_one(tmp_path: Path, end: str) -> None:
    (open_home(tmp_path).logs / local_gateway.UP_LOG).write_text("the process ended\n")
    settings = Settings(home=tmp_path, recall_port=NOWHERE)
    with (
        subprocess.Popen([sys.executable, "-c", end]) as process,
        pytest.raises(Unavailable, match="`reverie up` was stopped before all was up"),
    ):
        local_gateway.wait_until_up(settings, process)


def test_an_unknown_setting_of_a_flag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"nonsense: is no setting \(in the flags\)"):
        read_raw_settings(tmp_path, ["nonsense=1"])
