"""Memory limits of the machine or container, and process priority."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from reverie.cli.operate.doctor.machine_checks import check_python
from reverie.runtime.process import system_resources
from reverie.runtime.process.system_resources import memory_bytes
from reverie.runtime.settings.settings import Settings
from reverie_services.recall.app import choose_index_mb


@pytest.fixture
def _sixteen_gibibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**34 // 4096}
    monkeypatch.setattr(os, "sysconf", numbers.__getitem__)


@pytest.mark.usefixtures("_sixteen_gibibytes")
@pytest.mark.parametrize(
    ("told", "there"), [("max\n", 2**34), ("1073741824\n", 2**30), ("99999999999999\n", 2**34)]
)
def test_container_limits_are_respected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, there: int
) -> None:
    limit, other = tmp_path / "memory.max", tmp_path / "memory.limit_in_bytes"
    monkeypatch.setattr(system_resources, "MEMORY_LIMIT_FILES", [limit, other])
    assert memory_bytes() == 2**34
    other.write_text(told)
    assert memory_bytes() == there
    limit.write_text("536870912\n")
    assert memory_bytes() == 2**29


@pytest.mark.usefixtures("_sixteen_gibibytes")
def test_indexes_take_a_share_of_the_memory_unless_configured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(system_resources, "MEMORY_LIMIT_FILES", [])
    assert choose_index_mb(None) == 1342
    assert choose_index_mb(64) == 64
    assert choose_index_mb(0) == 0


@pytest.mark.parametrize(
    ("prefix", "told", "level"),
    [
        ("/home/ann/.pyenv/versions/3.11.7", "'--enable-shared'", "warning"),
        ("/home/ann/.pyenv/versions/3.11.7", "'--enable-optimizations' '--with-lto'", "ok"),
        ("/usr", "'--enable-shared' '--without-ensurepip'", "ok"),
        ("C:\\Python311", None, "ok"),
    ],
)
def test_a_python_built_without_optimizations_is_reported(
    monkeypatch: pytest.MonkeyPatch, prefix: str, told: str | None, level: str
) -> None:
    monkeypatch.setattr(sys, "base_prefix", prefix)
    monkeypatch.setattr(sysconfig, "get_config_var", {"CONFIG_ARGS": told}.get)
    (found,) = check_python(Settings(), None)
    assert found.level == level


SAY = """
import os
from reverie.runtime.process.system_resources import set_niceness
set_niceness(7)
print(os.nice(0), open("/proc/self/autogroup").read())
"""


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="no groups by session")
def test_a_session_leader_lowers_the_priority_of_its_session_only() -> None:
    def told(leads: bool) -> list[str]:
        command = [sys.executable, "-c", SAY]
        return subprocess.check_output(command, text=True, start_new_session=leads).split()

    assert told(True)[-1] == "7"
    # A session from before there were groups has none, and its file is empty.
    assert told(False)[1:] == Path("/proc/self/autogroup").read_text().split()
