"""Packages, file sizes and linter settings of the source tree."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "libs/reverie": {
        "adapters",
        "agent",
        "bus",
        "cli",
        "client",
        "contracts",
        "domain",
        "embedded",
        "inference",
        "mcp",
        "runtime",
        "store",
        "testing",
    },
    "services/reverie_services": {
        "compat",
        "console",
        "dream",
        "engine",
        "ingest",
        "recall",
        "staleness",
    },
}
MAX_LINES = 400
GATED = sorted(
    path
    for folder in ("libs", "services", "tests", "benchmarks", "chaos")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".sql"} and "_pb2" not in path.name
)


def config() -> dict[str, object]:
    """The tools' settings, as they stand in the project file."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert isinstance(tools, dict)
    return tools


@pytest.mark.parametrize(("package", "parts"), PACKAGES.items())
def test_each_package_holds_the_designed_sub_packages(package: str, parts: set[str]) -> None:
    folders = {path.name for path in (ROOT / package).iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == parts


def test_every_folder_with_code_is_a_regular_package() -> None:
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_every_class_name_occurs_once() -> None:
    """Else a search for the name finds two things."""
    modules: dict[str, list[str]] = {}
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        if "_pb2" in path.name:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}


def test_no_file_exceeds_the_size_limit() -> None:
    assert GATED
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in GATED}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_the_linter_limits_are_as_strict_as_agreed() -> None:
    tools = config()
    match tools:
        case {
            "ruff": {"lint": {"select": list(rules), "mccabe": {"max-complexity": int(most)}}},
            "mypy": {"strict": True},
            "pytest": {"ini_options": {"filterwarnings": ["error", *_]}},
        }:
            assert "C90" in rules
            assert most <= 10
        case _:
            pytest.fail("ruff's complexity, mypy strict or warnings as errors are not set")


def awaits(source: str) -> bool:
    """Whether the code defines or awaits anything asynchronous."""
    kinds = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    return any(isinstance(node, kinds) for node in ast.walk(ast.parse(source)))


def test_the_domain_never_awaits() -> None:
    domain = ROOT / "libs" / "reverie" / "domain"
    assert [path.name for path in domain.rglob("*.py") if awaits(path.read_text())] == []


def test_no_regex_uses_possessive_groups_that_python_before_3_11_5_gets_wrong() -> None:
    """There it stays behind what the last, failed round had read: `(?>(?:...)*)` says the same."""
    possessive = re.compile(r"[^\\]\)(?:[*+?]|\{+[0-9,]+\}+)\+")
    assert [bool(possessive.search(text)) for text in ("(?:a|b){1,2}+", "(?>(?:a|b)*)")] == [1, 0]
    found = [path.name for path in GATED if possessive.search(path.read_text())]
    assert found == [Path(__file__).name]


def sleeps(source: str) -> list[int]:
    """Lines that block on `time.sleep`, under whatever name it was imported."""
    if "sleep" not in source:
        return []
    tree = ast.parse(source)
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
        if alias.name == "sleep"
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if ast.unparse(call.func) in names | {"time.sleep"}]


def test_no_test_sleeps_longer_than_a_poll_interval() -> None:
    """A poll inside a bounded loop may sleep; a bare wait for something to happen may not."""
    assert sleeps("import time\ntime.sleep(1)\n") == [2]
    assert sleeps("from time import sleep as nap\nnap(1)\n") == [2]
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in GATED
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] == "tests"
        for line in sleeps(path.read_text())
        if not in_loop(path.read_text(), line)
    }
    assert found == set()


def in_loop(source: str, line: int) -> bool:
    """Whether the line lies inside a `while` or `for`."""
    loops = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.While | ast.For))
    return any(loop.lineno <= line <= (loop.end_lineno or line) for loop in loops)
