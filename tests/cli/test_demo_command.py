"""`reverie demo`: the store of its own, what is played there, and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reverie.cli.demo import chat_scene, scenes
from reverie.embedded.reporting import GATEWAY, Addresses
from reverie.embedded.supervision import supervisor
from reverie.embedded.supervision.supervisor import AfterReady
from reverie.runtime.settings.settings import Settings
from tests.support.commands import command

URL = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("words", "played", "succeeds"),
    [((), "day", True), ((), "day", False), (("chat",), "chat", True)],
)
async def test_the_demo_plays_in_a_store_of_its_own(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    played: str,
    succeeds: bool,
) -> None:
    started: list[Settings] = []
    plays: list[tuple[str, str, str]] = []

    async def start(settings: Settings, player: AfterReady, _: object) -> None:
        started.append(settings)
        await player(Addresses(settings.home, {GATEWAY: URL}, "", "", api_key="rv_first"))

    async def play_day(gateway: str, key: str, *_: Any) -> bool:
        plays.append(("day", gateway, key))
        return succeeds

    async def play_chat(gateway: str, key: str, *_: Any) -> bool:
        plays.append(("chat", gateway, key))
        return succeeds

    monkeypatch.setattr(supervisor, "run_supervisor", start)
    monkeypatch.setattr(scenes, "play_sample_day", play_day)
    monkeypatch.setattr(chat_scene, "play_chat", play_chat)
    env = {"HOME": str(tmp_path), "REVERIE_HOME": str(tmp_path / ".reverie")}
    code, out, _ = await command(env, "demo", *words, "--once")
    assert (code, plays) == (0 if succeeds else 1, [(played, URL, "rv_first")])
    assert "delete the folder: rm -r ~/.reverie-demo" in " ".join(out.split())
    [settings] = started
    assert settings.home == tmp_path / ".reverie-demo"
    assert settings.spans_file == settings.home / "spans" / "spans.jsonl"
    assert settings.engine_enabled is (played == "chat")


async def test_the_demo_plays_nothing_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start(settings: Settings, player: AfterReady, _: object) -> None:
        await player(Addresses(settings.home, {GATEWAY: URL}, "", ""))

    monkeypatch.setattr(supervisor, "run_supervisor", start)
    code, _, err = await command({"REVERIE_HOME": str(tmp_path)}, "demo", "--once")
    assert code != 0
    assert "REVERIE_API_KEY: is not set" in err
