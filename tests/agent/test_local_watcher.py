"""Known clones are watched, and agents without hooks are followed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reverie.agent.gateway.http_client import CallRefused, GatewayConnection, GatewayUnavailable
from reverie.agent.hooks.session_state import HookSessionState
from reverie.agent.watch.known_clones import (
    ALL_CLONES,
    forget_agent,
    list_clones,
    remember_clone,
)
from reverie.agent.watch.local_watcher import LocalWatcher
from reverie.runtime.settings.settings import Settings
from tests.agent.agent_files import ROO_TASK, write_roo
from tests.support.commands import command
from tests.support.git_clone import Clone
from tests.support.stack import Stack


class RecordingGateway(GatewayConnection):
    """Answers every call, and records them; it fails while `down`, and refuses some sessions."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9", "key", 1.0)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.down = False
        self.refused: set[str] = set()

    def request(self, method: str, path: str, body: Any = None, headers: Any = None) -> Any:
        if self.down:
            raise GatewayUnavailable("down")
        self.calls.append((path, body))
        if body and body.get("external_id") in self.refused:
            raise CallRefused(403, "forbidden")
        answers: dict[str, Any] = {
            "/v1/sessions/start": {"session": "s", "scope": "project/shop"},
            "/v1/turns": {"accepted": 1},
        }
        return answers.get(path, {"duplicate": False, "corrections": []})

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for called, body in self.calls if called == path]


def a_clone(folder: Path) -> Clone:
    folder.mkdir(parents=True)
    clone = Clone(folder, datetime.now(UTC) - timedelta(minutes=90))
    clone.git("init", "-q", "-b", "main")
    clone.commit("Keep prices in cents", {"price.py": "CENTS = 100\n"})
    return clone


def a_watcher(folder: Path, gateway: RecordingGateway) -> LocalWatcher:
    return LocalWatcher(folder / "home", str(folder), lambda _agent, _project: gateway)


def subjects(gateway: RecordingGateway) -> list[str]:
    return [
        commit["subject"]
        for change in gateway.bodies("/v1/git/changes")
        for commit in change["commits"]
    ]


def test_new_commits_of_a_known_clone_are_announced_once(tmp_path: Path) -> None:
    clone, gateway = a_clone(tmp_path / "shop"), RecordingGateway()
    a_clone(tmp_path / "stranger")
    remember_clone(tmp_path / "home", str(clone.root), "shop")
    watcher = a_watcher(tmp_path, gateway)
    watcher.check_once()
    assert gateway.calls == []
    clone.commit("Prices are integers, because floats lost money", {"price.py": "CENTS = 1\n"})
    Clone(tmp_path / "stranger", clone.at).commit("Unknown", {"a.py": "x = 1\n"})
    gateway.down = True
    watcher.check_once()
    gateway.down = False
    clone.commit("Round half up", {"price.py": "CENTS = 2\n"})
    for _ in range(3):
        watcher.check_once()
    assert subjects(gateway) == [
        "Prices are integers, because floats lost money",
        "Round half up",
    ]
    assert {change["project"] for change in gateway.bodies("/v1/git/changes")} == {"shop"}


def test_a_deleted_or_moved_clone_is_forgotten_and_stops_no_other(tmp_path: Path) -> None:
    gateway, home = RecordingGateway(), tmp_path / "home"
    kept, deleted, moved = (a_clone(tmp_path / name) for name in ("kept", "deleted", "moved"))
    for clone in (deleted, moved, kept):
        remember_clone(home, str(clone.root), clone.root.name)
    remember_clone(home, "/missing-disk/clone", "elsewhere")
    watcher = a_watcher(tmp_path, gateway)
    watcher.check_once()
    shutil.rmtree(deleted.root)
    moved.root.rename(tmp_path / "new-place")
    shutil.rmtree(kept.root / ".git/refs")
    watcher.check_once()
    assert [clone.project for clone in list_clones(home)] == ["kept"]
    kept.git("init", "-q")
    records = [json.loads(path.read_text()) for path in (home / "clones").glob("*.json")]
    assert sorted(record["project"] for record in records) == ["elsewhere", "kept"]


def test_a_link_or_a_folder_of_somebody_else_is_not_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, clone = tmp_path / "home", a_clone(tmp_path / "shop")
    (tmp_path / "link").symlink_to(clone.root)
    remember_clone(home, str(tmp_path / "link"), "shop")
    assert list_clones(home) == []
    remember_clone(home, str(clone.root), "shop")
    assert len(list_clones(home)) == 1
    monkeypatch.setattr(os, "geteuid", lambda: clone.root.stat().st_uid + 1)
    assert list_clones(home) == []


def test_the_name_of_a_project_is_the_one_that_was_confirmed(tmp_path: Path) -> None:
    clone, gateway = a_clone(tmp_path / "shop"), RecordingGateway()
    remember_clone(tmp_path / "home", str(clone.root), "shop")
    watcher = a_watcher(tmp_path, gateway)
    watcher.check_once()
    clone.commit("Name another project", {"reverie.toml": 'project = "payroll"\n'})
    watcher.check_once()
    assert {change["project"] for change in gateway.bodies("/v1/git/changes")} == {"shop"}


def test_an_agent_without_hooks_is_followed_since_its_setup(tmp_path: Path) -> None:
    gateway, home = RecordingGateway(), tmp_path / "home"
    path = write_roo(tmp_path)
    remember_clone(home, ALL_CLONES, "", "roo")
    watcher = a_watcher(tmp_path, gateway)
    watcher.check_once()
    assert gateway.calls == []
    later = int(datetime.now(UTC).timestamp() * 1000) + 60_000
    again = [{**message, "ts": later} for message in ROO_TASK]
    path.write_text(json.dumps([*ROO_TASK, *again[:2]]))
    watcher = a_watcher(tmp_path, gateway)
    gateway.down = True
    watcher.check_once()
    gateway.down = False
    watcher = a_watcher(tmp_path, gateway)
    watcher.check_once()
    path.write_text(json.dumps([*ROO_TASK, *again]))
    a_watcher(tmp_path, gateway).check_once()
    a_watcher(tmp_path, gateway).check_once()
    turns = [turn for body in gateway.bodies("/v1/turns") for turn in body["turns"]]
    assert [turn["role"] for turn in turns] == ["user", "tool", "assistant"]
    (session, *_) = gateway.bodies("/v1/sessions/start")
    assert (session["agent"], session["external_id"], session["project"]) == ("roo", "7a1f", "shop")


def a_followed_task(folder: Path) -> Path:
    """A task of an agent that is followed already."""
    path = write_roo(folder)
    remember_clone(folder / "home", ALL_CLONES, "", "roo")
    later = int(datetime.now(UTC).timestamp() * 1000) + 60_000
    path.write_text(json.dumps([{**message, "ts": later} for message in ROO_TASK]))
    return path


def sessions(gateway: RecordingGateway) -> list[str]:
    return [body["external_id"] for body in gateway.bodies("/v1/sessions/start")]


def test_a_refused_transcript_stops_no_other_and_is_sent_once_it_may_be(tmp_path: Path) -> None:
    gateway, path = RecordingGateway(), a_followed_task(tmp_path)
    other = path.parent.with_name("8b2f") / path.name
    other.parent.mkdir()
    shutil.copy(path, other)
    gateway.refused = {"7a1f"}
    watcher = a_watcher(tmp_path, gateway)
    watcher.check_once()
    a_watcher(tmp_path, gateway).check_once()
    assert sessions(gateway) == ["7a1f", "8b2f", "7a1f"]
    assert len(gateway.bodies("/v1/turns")) == 1
    gateway.refused = set()
    a_watcher(tmp_path, gateway).check_once()
    a_watcher(tmp_path, gateway).check_once()
    assert sessions(gateway) == ["7a1f", "8b2f", "7a1f", "7a1f"]
    first, second = gateway.bodies("/v1/turns")
    assert len(first["turns"]) == len(second["turns"]) == 3


def test_a_session_is_of_the_clone_whose_project_has_another_name_than_its_slug(
    tmp_path: Path,
) -> None:
    gateway, clone, path = RecordingGateway(), a_clone(tmp_path / "app"), a_followed_task(tmp_path)
    remember_clone(tmp_path / "home", str(clone.root), "My App")
    path.write_text(path.read_text().replace("/shop", "/My App"))
    a_watcher(tmp_path, gateway).check_once()
    assert gateway.bodies("/v1/sessions/start")[0]["project"] == "My App"
    state = HookSessionState(str(tmp_path / "home" / "hooks"), "roo", "7a1f")
    assert state.facts["root"] == str(clone.root)


def test_a_place_that_fails_stops_no_other(tmp_path: Path) -> None:
    gateway, clone = RecordingGateway(), a_clone(tmp_path / "shop")
    a_followed_task(tmp_path)
    remember_clone(tmp_path / "home", str(clone.root), "shop")

    def connect(agent: str, _project: str) -> GatewayConnection:
        if not agent:
            raise RuntimeError("its settings are damaged")
        return gateway

    LocalWatcher(tmp_path / "home", str(tmp_path), connect).check_once()
    assert sessions(gateway) == ["7a1f"]


async def test_the_watcher_goes_on_after_a_look_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.agent.watch.local_watcher.CLONE_INTERVAL_SECONDS", 0.01)
    loop, again = asyncio.get_running_loop(), asyncio.Event()

    class FailingWatcher(LocalWatcher):
        looks = 0

        def check_once(self) -> None:
            self.looks += 1
            if self.looks == 2:
                loop.call_soon_threadsafe(again.set)
            raise RuntimeError("what nobody thought of")

    gateway = RecordingGateway()
    watcher = FailingWatcher(tmp_path / "home", str(tmp_path), lambda _agent, _project: gateway)
    watching, looked_again = asyncio.create_task(watcher.run()), asyncio.create_task(again.wait())
    await asyncio.wait({watching, looked_again}, return_when=asyncio.FIRST_COMPLETED)
    try:
        assert not watching.done()
        assert looked_again.done()
    finally:
        watching.cancel()
        looked_again.cancel()
        await asyncio.gather(watching, looked_again, return_exceptions=True)


def test_an_agent_of_one_project_is_not_followed_in_another(tmp_path: Path) -> None:
    gateway, home = RecordingGateway(), tmp_path / "home"
    clone = a_clone(tmp_path / "mill")
    remember_clone(home, str(clone.root), "mill", "roo")
    path = write_roo(tmp_path)
    later = int(datetime.now(UTC).timestamp() * 1000) + 60_000
    path.write_text(json.dumps([{**message, "ts": later} for message in ROO_TASK]))
    a_watcher(tmp_path, gateway).check_once()
    assert gateway.bodies("/v1/turns") == []
    forget_agent(home, str(clone.root), "roo")
    assert [dict(known.agents) for known in list_clones(home)] == [{}]


async def test_setup_and_init_make_a_clone_known_and_its_commits_are_stored(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    clone, home = a_clone(tmp_path / "shop"), tmp_path / "home"
    env = {
        "REVERIE_GATEWAY_URL": stack.url,
        "REVERIE_API_KEY": stack.key,
        "REVERIE_HOME": str(home),
    }
    place = str(clone.root)
    assert (await command(env, "setup", "aider", "-C", place, "--yes"))[0] == 0
    assert (await command(env, "init", "shop", "-C", place, "--yes"))[0] == 0
    (known,) = list_clones(home)
    assert (known.root, known.project, set(known.agents)) == (place, "shop", {"aider"})
    assert (await command(env, "follow", "--once"))[:2] == (0, "")
    reason = "Round half up, because customers complained about lost cents"
    clone.commit(reason, {"price.py": "CENTS = 2\n"})
    code, out, err = await command(env, "follow", "--once")
    assert (code, out) == (0, f"shop: {reason}\n"), err
    away = {**env, "REVERIE_GATEWAY_URL": "http://127.0.0.1:9"}
    code, _, err = await command(away, "follow", "--once")
    assert (code, "the gateway does not answer" in err) == (3, True)
    with LocalWatcher(home, str(tmp_path), lambda _agent, _project: None).locked():
        code, _, err = await command(env, "follow", "--once")
    assert code == 6
    assert "another process" in err
    found = (await stack.get("/v1/memories?scope=project/shop"))["items"]
    assert any("Round half up" in memory["content"] for memory in found)
    assert (await command(env, "setup", "aider", "-C", place, "--undo", "--yes"))[0] == 0
    assert [dict(known.agents) for known in list_clones(home)] == [{}]
    code, _, err = await command({**env, "REVERIE_HOME": str(tmp_path / "none")}, "follow")
    assert (code, "reverie setup AGENT" in err) == (2, True)


async def test_a_setting_turns_the_watcher_off(tmp_path: Path) -> None:
    from reverie.cli.agents.follow import watch_known_clones

    await watch_known_clones(Settings(home=tmp_path, watch_enabled=False))
    assert not (tmp_path / "run").exists()
