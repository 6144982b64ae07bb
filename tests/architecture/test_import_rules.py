"""Each import-linter contract fails when it is broken."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = "from importlinter.cli import lint_imports_command as lint; lint()"


@dataclass(frozen=True)
class Breach:
    """A line written into a module, and what the linter has to say about it."""

    module: str
    line: str
    contract: str
    complaint: str


BREACHES = {
    "domain reaches up": Breach(
        "libs/reverie/domain/core/ids.py",
        "import reverie.store",
        "layers",
        "reverie.domain is not allowed to import reverie.store",
    ),
    "a service imports another service": Breach(
        "services/reverie_services/ingest/__init__.py",
        "import reverie_services.recall",
        "services",
        "reverie_services.ingest is not allowed to import reverie_services.recall",
    ),
    "store reaches sideways": Breach(
        "libs/reverie/store/__init__.py",
        "import reverie.bus",
        "layers",
        "reverie.store is not allowed to import reverie.bus",
    ),
    "a library imports a service": Breach(
        "libs/reverie/embedded/__init__.py",
        "import reverie_services.ingest",
        "services",
        "reverie.embedded is not allowed to import reverie_services.ingest",
    ),
    "a new folder is unknown": Breach(
        "libs/reverie/gossip/__init__.py",
        "",
        "layers",
        "- reverie.gossip",
    ),
    "a service loads the embedded servers": Breach(
        "services/reverie_services/dream/__init__.py",
        "import reverie.embedded",
        "production",
        "reverie_services is not allowed to import reverie.embedded",
    ),
    "the client side opens the store": Breach(
        "libs/reverie/agent/__init__.py",
        "import reverie.store",
        "client-side",
        "reverie.agent is not allowed to import reverie.store",
    ),
    "two modules need each other": Breach(
        "libs/reverie/domain/core/errors.py",
        "import reverie.domain.access.scopes",
        "cycles",
        "No cycles are allowed in reverie.domain",
    ),
    "a service runs SQL": Breach(
        "services/reverie_services/recall/__init__.py",
        "import asyncpg",
        "postgres",
        "reverie_services.recall is not allowed to import asyncpg",
    ),
    "a service publishes past the bus": Breach(
        "services/reverie_services/recall/__init__.py",
        "from nats.js import JetStreamContext",
        "nats",
        "reverie_services.recall is not allowed to import nats",
    ),
    "a service speaks the protocol of tools itself": Breach(
        "services/reverie_services/recall/__init__.py",
        "from mcp.server.lowlevel import Server",
        "mcp",
        "reverie_services.recall is not allowed to import mcp",
    ),
    "the client opens the store": Breach(
        "libs/reverie/client/__init__.py",
        "import reverie.store",
        "client-side",
        "reverie.client is not allowed to import reverie.store",
    ),
    "a service runs a model": Breach(
        "services/reverie_services/dream/__init__.py",
        "import onnxruntime",
        "models",
        "reverie_services.dream is not allowed to import onnxruntime",
    ),
    "store serves HTTP": Breach(
        "libs/reverie/store/__init__.py",
        "import aiohttp",
        "http",
        "reverie.store is not allowed to import aiohttp",
    ),
    "domain reads a file": Breach(
        "libs/reverie/domain/core/ids.py",
        "import pathlib",
        "pure",
        "reverie.domain is not allowed to import pathlib",
    ),
}


@cache
def names() -> dict[str, str]:
    """What the linter calls each contract."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {one["id"]: one["name"] for one in told["tool"]["importlinter"]["contracts"]}


def copied(place: Path) -> Path:
    """The code as it stands, in a place where it may be broken."""
    for root in ("libs", "services"):
        shutil.copytree(
            ROOT / root, place / root, ignore=shutil.ignore_patterns("__pycache__", "*.onnx")
        )
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def lint(place: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    """Runs the linter over the code in `place` alone.

    `-S` leaves out the path file of the installed project, which would add its folders to the
    namespace; the linter itself then comes from the path.
    """
    paths = [place / "libs", place / "services", sysconfig.get_path("purelib")]
    chosen = [part for contract in contracts for part in ("--contract", contract)]
    return subprocess.run(
        [sys.executable, "-S", "-c", LINT, "--no-logo", "--no-cache", *chosen],
        cwd=place,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def complaints(said: str) -> dict[str, str]:
    """What the linter has to say, by the broken contract."""
    _, _, broken = said.partition("Broken contracts\n")
    heads = "|".join(map(re.escape, names().values()))
    parts = re.split(rf"^({heads})\n-+\n", broken, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture(scope="module", params=[True, False], ids=["layers", "others"])
def broken(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bool, dict[str, str]]:
    """The code with all breaches of the layers in it, or with all others, and what is said of it.

    Apart, for a module that reaches up closes circles, too.
    """
    place = copied(tmp_path_factory.mktemp("broken"))
    breaches = [one for one in BREACHES.values() if (one.contract == "layers") == request.param]
    for one in breaches:
        module = place / one.module
        module.parent.mkdir(exist_ok=True)
        with module.open("a") as text:
            text.write(f"\n{one.line}\n")
    done = lint(place, *{one.contract for one in breaches})
    assert done.returncode == 1, done.stdout
    return request.param, complaints(done.stdout)


def test_the_code_keeps_every_import_contract(tmp_path: Path) -> None:
    done = lint(copied(tmp_path))
    assert done.returncode == 0, done.stdout
    assert ", 0 broken" in done.stdout


def test_a_violation_breaks_its_contract(broken: tuple[bool, dict[str, str]]) -> None:
    of_layers, said = broken
    for name, one in BREACHES.items():
        if (one.contract == "layers") == of_layers:
            assert one.complaint in said[names()[one.contract]], name
