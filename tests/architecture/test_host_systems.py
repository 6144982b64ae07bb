"""What only Linux has is used behind a check, so that other systems take the other way."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from reverie.agent.coding_agents import config_folder, transcript_paths
from reverie.agent.setup.agents import SetupTarget, plan_files
from reverie.contracts import host_system
from reverie.embedded import privileges
from reverie.runtime.process import system_resources

ROOT = Path(__file__).parents[2]
LINUX_ONLY = re.compile(
    r"/proc/|/sys/fs|/dev/shm|prctl|sched_(?:get|set)affinity|memfd_create|pidfd_open|epoll"
    r"|inotify|posix_fadvise|TCP_KEEPIDLE|TCP_USER_TIMEOUT|SO_PEERCRED"
)
ASKS_FOR_THE_SYSTEM = re.compile(r"sys\.platform|platform\.system\(|os\.uname\(")
WITH_A_FALLBACK = {
    "libs/reverie/runtime/process/system_resources.py",
    "libs/reverie/embedded/privileges.py",
    "libs/reverie/embedded/servers/postgres.py",
    "libs/reverie/testing/servers.py",
}
"""Files that use what only Linux has; the tests below go the other way."""


def lines_of_code(pattern: re.Pattern[str]) -> dict[str, list[str]]:
    """The lines of the product that match, by file, without comments and docstrings."""
    found: dict[str, list[str]] = {}
    for folder in ("libs", "services"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = re.sub(r'"""(?:.|\n)*?"""', "", path.read_text())
            lines = [line for line in text.splitlines() if not line.strip().startswith("#")]
            if matching := [line for line in lines if pattern.search(line)]:
                found[path.relative_to(ROOT).as_posix()] = matching
    return found


def test_only_known_files_use_what_only_linux_has() -> None:
    assert set(lines_of_code(LINUX_ONLY)) <= WITH_A_FALLBACK


def test_one_function_names_the_system() -> None:
    assert set(lines_of_code(ASKS_FOR_THE_SYSTEM)) == {"libs/reverie/contracts/host_system.py"}


@pytest.fixture
def macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_system, "host_system", lambda: "darwin")


@pytest.mark.usefixtures("macos")
def test_editors_keep_their_settings_where_macos_has_them() -> None:
    assert config_folder("/Users/ann") == "/Users/ann/Library/Application Support"
    storage = "/Users/ann/Library/Application Support/Code/User/globalStorage"
    tasks = f"{storage}/rooveterinaryinc.roo-cline/tasks"
    assert tasks in transcript_paths("roo", "/Users/ann")
    place = SetupTarget(Path("/Users/ann"), Path("/shop"), "shop", is_user_wide=True)
    assert {
        str(path)
        for agent in ("cline", "roo")
        for path in plan_files(agent, place)
        if "globalStorage" in str(path)
    } == {
        f"{storage}/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        f"{storage}/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
    }


def test_linux_keeps_its_folders() -> None:
    assert config_folder("/home/ann") == "/home/ann/.config"


@pytest.mark.usefixtures("macos")
def test_a_process_runs_without_the_files_of_linux(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert privileges.permitted_capabilities() == 0
    written = tmp_path / "autogroup"
    monkeypatch.setattr(system_resources, "_AUTOGROUP_FILE", written)
    monkeypatch.setattr(os, "nice", lambda _: 0)
    monkeypatch.setattr(os, "getsid", lambda _: os.getpid())
    system_resources.set_niceness(5)
    assert not written.exists()
    monkeypatch.setattr(os, "sysconf_names", {})
    monkeypatch.setattr(system_resources, "MEMORY_LIMIT_FILES", (tmp_path / "memory.max",))
    assert system_resources.memory_bytes() > 100 << 20
