"""Who uses a machine, by setting, git or login."""

from __future__ import annotations

from pathlib import Path

from reverie.agent.gateway.location import user_from_environment
from reverie.agent.gateway.user_detection import detect_user
from reverie.contracts.headers import user_header


def test_a_user_is_known_by_setting_then_git_then_login(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environ = {"HOME": str(home), "LOGNAME": "ann", "REVERIE_HOME": str(tmp_path)}
    assert user_from_environment(environ) == "ann"
    xdg = home / ".config" / "git"
    xdg.mkdir(parents=True)
    (xdg / "config").write_text("[user]\n\temail = old@example.com ; mine\n")
    assert user_from_environment(environ) == "old@example.com"
    (home / ".gitconfig").write_text('[core]\n\temail = no\n[user]\n\temail = "ann@example.com"\n')
    assert user_from_environment(environ) == "ann@example.com"
    (tmp_path / "config.toml").write_text('user = "Ann Lee"\n')
    assert user_from_environment(environ) == "Ann Lee"
    assert user_from_environment({**environ, "REVERIE_USER": "lee"}) == "lee"
    assert detect_user("named", environ) == "named"
    assert detect_user("named", {**environ, "REVERIE_USER": "lee"}) == "lee"


def test_a_clone_does_not_say_who_its_user_is(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[user]\n\temail = victim@example.com\n")
    assert detect_user("", {"HOME": str(tmp_path), "USER": "ann"}) == "ann"


def test_the_header_is_ascii() -> None:
    assert user_header("Jürgen 李") == {"Reverie-User": "J%C3%BCrgen%20%E6%9D%8E"}
    assert user_header("") == {}
