"""The distribution of the client alone: what it needs, what it holds, and that this suffices."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from reverie import __version__

ROOT = Path(__file__).parents[2]
INSTALLED = {"annotated_types", "anyio", "h11", "httpcore2", "httpx2", "idna", "pydantic"}
INSTALLED |= {"pydantic_core", "reverie", "tenacity", "truststore"}
INSTALLED |= {"typing_extensions", "typing_inspection"}
"""What the client and its dependencies bring."""

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys

class NothingElse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in {others}:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, NothingElse())
import reverie
assert reverie.__path__ == [{path!r} + "/reverie"], reverie.__path__
for module in pkgutil.walk_packages(reverie.__path__, "reverie.", onerror=lambda name: None):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as missing:
        # An adapter needs the framework that its extra brings.
        assert module.name.startswith("reverie.adapters."), (module.name, missing)
        assert not missing.name.startswith("reverie"), (module.name, missing)
from reverie.client.errors import build_api_error
print(build_api_error(502, "<html>", "GET /v1/memories"))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the client, built from the tree as it stands."""
    own = ROOT / ".uv" / "bin" / "uv"
    uv = own if own.exists() else shutil.which("uv")
    assert uv, "no uv: run the suite by `make test`, or put uv on the PATH"
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [uv, "build", "--wheel", "--out-dir", out, ROOT / "clients" / "python"],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("reverie_client-*.whl")
    return built


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """What an installer reads."""
    with zipfile.ZipFile(wheel) as files:
        (name,) = [one for one in files.namelist() if one.endswith("METADATA")]
        return message_from_bytes(files.read(name))


def test_the_client_needs_no_server_and_no_model(metadata: Message) -> None:
    needed = [one for one in metadata.get_all("Requires-Dist", []) if "extra ==" not in one]
    assert [one.partition(">")[0] for one in needed] == ["httpx2", "pydantic", "tenacity"]
    assert metadata["Version"] == __version__


def test_each_adapter_is_an_extra_and_has_its_module(metadata: Message) -> None:
    modules = {
        path.stem.replace("_", "-")
        for path in (ROOT / "libs" / "reverie" / "adapters").glob("*.py")
        if path.stem not in {"__init__", "common"}
    }
    extras = set(metadata.get_all("Provides-Extra", []))
    assert modules - extras == set()


def test_the_wheel_is_small_and_holds_no_service(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = [info.filename for info in files.infolist()]
        assert sum(info.file_size for info in files.infolist()) < 2_000_000
    parts = {name.split("/")[1] for name in names if name.startswith("reverie/")}
    parts -= {"__init__.py", "py.typed"}
    # Of what runs beside an agent, only the reading of a transcript.
    assert parts == {"adapters", "agent", "client", "contracts", "domain"}
    assert not [name for name in names if "pb2" in name or name.endswith(".pyc")]


def test_everything_in_it_is_imported_with_its_dependencies_alone(
    wheel: Path, tmp_path: Path
) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = IMPORT_EVERYTHING.format(
        others=set(packages_distributions()) - INSTALLED, path=str(tmp_path)
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "502 without a problem document" in done.stdout
