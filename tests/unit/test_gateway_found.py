"""Commands, hooks and `reverie mcp` find the same gateway, with the same key."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.agent.hook_gateway import find_gateway
from reverie.cli.gateway import find
from reverie.cli.near import place_of
from reverie.domain.errors import ReverieError
from reverie.runtime.setting_sources import load_settings

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
def test_what_is_set_comes_before_what_runs_for_whoever_asks(
    running: Path, url: str, key: str, found: tuple[str, str] | None
) -> None:
    said = {name: value for name, value in (("gateway_url", url), ("api_key", key)) if value}
    try:
        command = place_of({**said, "home": str(running)})
    except ReverieError:
        command = None
    told = {f"REVERIE_{name.upper()}": value for name, value in said.items()}
    hook = find_gateway({**told, "REVERIE_HOME": str(running)}, 1)
    tools = find(load_settings({**said, "home": running}))
    assert command == found
    assert (hook and (hook.url, hook.key)) == found
    assert (tools and (tools.url, tools.key)) == found
