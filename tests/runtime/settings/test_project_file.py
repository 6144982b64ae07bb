"""What the `reverie.toml` of a clone may say, and that nothing else of it takes effect."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.agent.git.project_detection import detect_project
from reverie.agent.git.repository import open_repository
from reverie.cli.agents.git_anchor import resolve_project
from reverie.cli.app.gateway_search import find_gateway
from reverie.cli.app.gateway_settings import read_raw_settings
from reverie.cli.app.main import app
from reverie.contracts.project_file import ALLOWED_NAMES, find_project_file
from reverie.domain.core.errors import Misconfigured
from reverie.runtime.settings import project_file
from reverie.runtime.settings.loading import load_settings
from reverie.runtime.settings.settings import Settings

LISTED_AT_ONCE = 10
"""As many names as one warning lists."""
REFUSED = sorted(set(Settings.model_fields) - ALLOWED_NAMES)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a clone, beside an empty home and without variables of Reverie."""
    for name in [name for name in os.environ if name.startswith("REVERIE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    for folder in ("home", "shop/.git"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    project_file._warn_once.cache_clear()
    return tmp_path / "shop"


@pytest.fixture
def hostile_port() -> Iterator[tuple[int, list[bytes]]]:
    """A port of somebody else, and what was sent to it."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    received.append(connection.recv(65536))
                    connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield server.getsockname()[1], received
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_a_project_file_may_name_the_project_and_nothing_else() -> None:
    assert {"project"} == ALLOWED_NAMES


def test_every_other_setting_is_ignored_and_named_in_a_warning(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = clone.parent / "home"
    for start in range(0, len(REFUSED), LISTED_AT_ONCE):
        names = REFUSED[start : start + LISTED_AT_ONCE]
        lines = [f"{name} = 'http://elsewhere:1'\n" for name in names]
        (clone / "reverie.toml").write_text(f"project = 'shop'\n{''.join(lines)}")
        assert load_settings() == Settings(home=home, project="shop")
        raw = read_raw_settings(None, ())
        assert {name: value for name, value in raw.items() if value is not None} == {
            "home": str(home),
            "project": "shop",
        }
        [warning] = capsys.readouterr().err.splitlines()
        assert f"ignored: {', '.join(names)}." in warning
        assert str(clone / "reverie.toml") in warning
        assert "elsewhere" not in warning


def test_a_name_that_is_no_setting_is_ignored_and_cannot_write_to_the_terminal(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (clone / "reverie.toml").write_text('projekt = "shop"\n"\\u001b[2J\\u009b" = 1\n[host]\n')
    assert load_settings().project is None
    warning = capsys.readouterr().err
    assert "projekt (did you mean project?)" in warning
    assert "host" in warning
    assert not set(warning) & {"\x1b", "\x9b"}


def test_an_address_in_a_clone_gets_neither_key_nor_call(
    clone: Path, hostile_port: tuple[int, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, received = hostile_port
    monkeypatch.setenv("REVERIE_API_KEY", "rv_mine")
    for lines in (
        f"host = '127.0.0.1'\nrecall_port = {port}\n",
        f"gateway_url = 'http://127.0.0.1:{port}'\n",
    ):
        (clone / "reverie.toml").write_text(lines)
        CliRunner().invoke(app, ["recall", "anything", "--set", "request_timeout=2"])
        CliRunner().invoke(app, ["status"])
        location = find_gateway(load_settings())
        assert location is None or str(port) not in location.url
    assert received == []


def test_the_key_of_a_clone_does_not_replace_the_user_s(clone: Path) -> None:
    user_file = clone.parent / "home" / "config.toml"
    user_file.write_text("gateway_url = 'http://127.0.0.1:1'\napi_key = 'rv_mine'\n")
    (clone / "reverie.toml").write_text("project = 'shop'\napi_key = 'rv_attackers'\n")
    assert read_raw_settings(None, ())["api_key"] == "rv_mine"
    settings = load_settings()
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "rv_mine"


@pytest.mark.parametrize("name", ["x$(touch pwned)", "a`b\nc", "My Shop", "../../etc"])
def test_a_project_name_becomes_a_slug_before_anything_uses_it(clone: Path, name: str) -> None:
    from reverie.domain.access.scopes import slugify

    escaped = name.replace("\n", "\\n")
    (clone / "reverie.toml").write_text(f'project = "{escaped}"\n')
    expected = slugify(name)
    assert load_settings().project == expected
    assert read_raw_settings(None, ())["project"] == expected
    assert detect_project(str(clone), None, {}).project == expected


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/stdin", "/proc/self/mem"])
def test_a_project_file_that_leads_to_a_device_is_not_read(clone: Path, target: str) -> None:
    (clone / "reverie.toml").symlink_to(target)
    assert detect_project(str(clone), None, {}).project == "shop"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("project = \n", "is not TOML: .*line 1"),
        ("project = 7", "must set `project` to a text"),
        (f"project = '{'x' * 201}'", "at most 200 characters"),
        ("project = ' '", "blank"),
        ("#" * 70_000, "longer than 65536 bytes"),
    ],
)
def test_an_unusable_project_file_is_named_and_ignored_by_hooks(
    clone: Path, text: str, reason: str
) -> None:
    (clone / "reverie.toml").write_text(text)
    for load in (load_settings, lambda: read_raw_settings(None, ())):
        with pytest.raises(Misconfigured, match=reason) as caught:
            load()
        assert caught.value.setting == str(clone / "reverie.toml")
    assert detect_project(str(clone), None, {}).project == "shop"


def test_a_file_above_a_folder_applies_within_a_clone_only(tmp_path: Path) -> None:
    below = tmp_path / "shop" / "src"
    below.mkdir(parents=True)
    (tmp_path / "reverie.toml").write_text("project = 'planted'\n")
    assert find_project_file(str(below)) == str(below / "reverie.toml")
    (tmp_path / "shop" / ".git").mkdir()
    assert find_project_file(str(below)) == str(tmp_path / "shop" / "reverie.toml")
    own = below / "reverie.toml"
    own.write_text("project = 'own'\n")
    assert find_project_file(str(below)) == str(own)


def test_a_linked_work_tree_is_of_the_project_of_its_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("REVERIE_PROJECT", raising=False)
    clone, linked, planted = tmp_path / "shop", tmp_path / "fix-login", tmp_path / "planted"
    git = ("git", "-c", "user.name=ann", "-c", "user.email=ann@example.com", "-C", str(clone))
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "Begin"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(linked)], check=True)
    assert detect_project(str(linked), None, {}).project == "shop"
    assert resolve_project(open_repository(linked), None) == "shop"
    (clone / "reverie.toml").write_text("project = 'store'\n")
    assert detect_project(str(linked), None, {}).project == "store"
    assert resolve_project(open_repository(linked), None) == "store"
    monkeypatch.chdir(linked)
    assert load_settings().project == "store"
    planted.mkdir()
    (planted / ".git").write_text((linked / ".git").read_text())
    assert find_project_file(str(planted)) == str(planted / "reverie.toml")
    (linked / "reverie.toml").write_text("project = 'own'\n")
    assert detect_project(str(linked), None, {}).project == "own"
