"""The home folder: its secrets, its mode, who can reach it, and one supervisor at a time."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from pydantic import SecretStr

from reverie.domain.core.errors import Conflict, Misconfigured
from reverie.embedded import home, privileges
from reverie.embedded.home import open_home
from reverie.embedded.lock import hold_home_lock, is_home_locked
from reverie.embedded.servers.backends import PostgresBackend
from reverie.embedded.supervision.supervisor import _with_vault_key
from reverie.runtime.settings.settings import Settings
from reverie.store.db.encryption import create_cipher

STRANGER = 54_321


def test_secrets_are_created_once_and_readable_by_their_owner_only(tmp_path: Path) -> None:
    root = tmp_path / "home"
    root.mkdir(mode=0o700)
    place = open_home(root)
    assert stat.S_IMODE(root.stat().st_mode) == 0o700, "an existing folder keeps its mode"
    first = home.get_or_create_secret(place, "nats")
    assert home.get_or_create_secret(place, "nats") == first
    assert len(first) >= 43
    assert stat.S_IMODE((place.secrets / "nats").stat().st_mode) == 0o600
    assert stat.S_IMODE(place.secrets.stat().st_mode) == 0o700


def test_the_vault_has_its_own_master_key_unless_one_is_set(tmp_path: Path) -> None:
    place = open_home(tmp_path / "home")
    made = _with_vault_key(Settings(), place).vault_key
    assert made is not None
    file = place.secrets / "vault_key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() == made.get_secret_value()
    assert create_cipher(made.get_secret_value()).newest_key_id is not None
    assert _with_vault_key(Settings(), place).vault_key == made
    given = SecretStr("given")
    assert _with_vault_key(Settings(vault_key=given), place).vault_key == given


def test_a_home_that_cannot_be_created_is_an_invalid_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match="REVERIE_HOME"):
        open_home(tmp_path / "file" / "home")


def test_a_folder_closed_to_others_is_not_reachable_for_another_user(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "below").mkdir(parents=True)
    for folder in (top, top / "below"):
        folder.chmod(0o711)
    inside = privileges.is_reachable(top / "below", STRANGER, STRANGER)
    assert inside == privileges.is_reachable(tmp_path, STRANGER, STRANGER)
    top.chmod(0o700)
    assert not privileges.is_reachable(top / "below", STRANGER, STRANGER)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to hand Postgres on")
def test_root_hands_on_the_smallest_capability_or_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    data = tmp_path / "postgres"
    assert privileges.choose_account(data).passes_closed_folders
    for held, chosen in ((1 << 1 | 1 << 2 | 1 << 8, "read_search"), (1 << 1 | 1 << 8, "override")):
        monkeypatch.setattr(privileges, "permitted_capabilities", lambda held=held: held)
        assert f"--ambient-caps=-all,+dac_{chosen}" in privileges.choose_account(data).prefix
    monkeypatch.setattr(privileges, "permitted_capabilities", lambda: 0)
    with pytest.raises(Misconfigured, match=r"Run as a normal user, or set REVERIE_HOME"):
        privileges.choose_account(data)


def test_one_home_has_one_supervisor(tmp_path: Path) -> None:
    place = open_home(tmp_path)
    assert not is_home_locked(place)
    with hold_home_lock(place):
        assert is_home_locked(place)
        with pytest.raises(Conflict, match="already up"), hold_home_lock(place):
            pass
    assert not is_home_locked(place)


def test_a_text_that_is_no_key_becomes_none(tmp_path: Path) -> None:
    place = open_home(tmp_path)
    home.write_secret(place, "api_key", "garbage")
    backend = PostgresBackend(Settings(), place)
    backend.processes.append(None)  # type: ignore[arg-type]
    with pytest.raises(Misconfigured, match=r"api_key: holds no API key: .*delete the file"):
        backend.ensure_key()
