"""What is taken by the memory there is counts that of the container, where it has less."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from reverie.cli.findings import python
from reverie.recall.app import kept_mb
from reverie.runtime import machine
from reverie.runtime.machine import memory_bytes
from reverie.runtime.settings import Settings


@pytest.fixture
def _sixteen_gibibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**34 // 4096}
    monkeypatch.setattr(os, "sysconf", numbers.__getitem__)


@pytest.mark.usefixtures("_sixteen_gibibytes")
@pytest.mark.parametrize(
    ("told", "there"), [("max\n", 2**34), ("1073741824\n", 2**30), ("99999999999999\n", 2**34)]
)
def test_a_container_has_no_more_than_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, there: int
) -> None:
    limit, other = tmp_path / "memory.max", tmp_path / "memory.limit_in_bytes"
    monkeypatch.setattr(machine, "LIMITS", [limit, other])
    assert memory_bytes() == 2**34
    other.write_text(told)
    assert memory_bytes() == there
    limit.write_text("536870912\n")
    assert memory_bytes() == 2**29


@pytest.mark.usefixtures("_sixteen_gibibytes")
def test_what_a_gateway_keeps_is_a_share_of_the_memory_unless_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "LIMITS", [])
    assert kept_mb(None, 1 / 16) == 1073
    assert kept_mb(64, 1 / 16) == 64
    assert kept_mb(0, 1 / 16) == 0


@pytest.mark.parametrize(
    ("prefix", "told", "level"),
    [
        ("/home/ann/.pyenv/versions/3.11.7", "'--enable-shared'", "note"),
        ("/home/ann/.pyenv/versions/3.11.7", "'--enable-optimizations' '--with-lto'", "ok"),
        ("/usr", "'--enable-shared' '--without-ensurepip'", "ok"),
        ("C:\\Python311", None, "ok"),
    ],
)
def test_a_python_built_without_optimisations_is_pointed_at(
    monkeypatch: pytest.MonkeyPatch, prefix: str, told: str | None, level: str
) -> None:
    monkeypatch.setattr(sys, "base_prefix", prefix)
    monkeypatch.setattr(sysconfig, "get_config_var", {"CONFIG_ARGS": told}.get)
    (found,) = python(Settings(), None)
    assert found.level == level
