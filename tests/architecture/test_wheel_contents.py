"""The built wheel holds all packages, their SQL and the typing marker."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = {".py", ".sql", ".toml", ".txt", ".typed", ".html", ".css", ".js", ".svg", ".json"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the tree as it stands."""
    own = ROOT / ".uv" / "bin" / "uv"
    uv = own if own.exists() else shutil.which("uv")
    assert uv, "no uv: run the suite by `make test`, or put uv on the PATH"
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [uv, "build", "--wheel", "--out-dir", out, ROOT],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built


def sources() -> set[str]:
    """The files of both packages, by the path that each has when installed."""
    return {
        path.relative_to(ROOT / root).as_posix()
        for root, package in (("libs", "reverie"), ("services", "reverie_services"))
        for path in (ROOT / root / package).rglob("*")
        if path.suffix in SHIPPED
    }


def test_the_wheel_holds_both_packages_and_their_sql(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert sources() - names == set()
    assert "reverie/py.typed" in names


def test_the_wheel_holds_only_the_packages_and_their_metadata(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "reverie",
        "reverie_services",
    }


def test_a_service_and_a_library_can_be_imported_from_the_unpacked_wheel(
    wheel: Path, tmp_path: Path
) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import reverie, reverie_services.recall, reverie.domain.access.scopes; "
        "print(*reverie.__path__)"
    )
    path = os.pathsep.join([str(tmp_path), sysconfig.get_path("purelib")])
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert set(done.stdout.split()) == {str(tmp_path / "reverie")}, done.stderr
