"""The shape of the house: two roots, one namespace, files that fit on a few screens."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = {
    "libs": {
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
    "services": {"dream", "ingest", "recall", "staleness"},
}
MAX_LINES = 400
GATED = sorted(
    path
    for folder in ("libs", "services", "tests")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".sql"} and "_pb2" not in path.name
)


def config() -> dict[str, object]:
    """The tools' settings, as they stand in the project file."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert isinstance(tools, dict)
    return tools


def folders(root: str) -> set[str]:
    """The folders with code under one source root."""
    house = ROOT / root / "reverie"
    return {path.name for path in house.iterdir() if path.is_dir() and path.name.isidentifier()}


@pytest.mark.parametrize("root", ROOTS)
def test_no_root_hides_the_other_behind_an_init_file(root: str) -> None:
    assert not (ROOT / root / "reverie" / "__init__.py").exists()


def test_the_package_is_a_namespace_that_spans_both_roots() -> None:
    spec = importlib.util.find_spec("reverie")
    assert spec is not None
    assert spec.origin is None
    portions = {Path(place) for place in spec.submodule_search_locations or ()}
    assert portions == {ROOT / root / "reverie" for root in ROOTS}


@pytest.mark.parametrize(("root", "rooms"), ROOTS.items())
def test_every_folder_is_one_that_the_design_names(root: str, rooms: set[str]) -> None:
    assert folders(root) - {"__pycache__"} == rooms


def test_a_folder_that_holds_code_is_a_package_that_the_import_rule_sees() -> None:
    holding = {
        path.parent
        for root in ROOTS
        for path in (ROOT / root / "reverie").rglob("*.py")
        if path.parent.name != "reverie"
    }
    assert [str(place) for place in holding if not (place / "__init__.py").exists()] == []


def test_no_file_is_longer_than_the_gate_allows() -> None:
    assert GATED
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in GATED}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_the_gates_of_the_linters_are_as_tight_as_agreed() -> None:
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


def test_no_group_is_repeated_possessively_as_python_before_3_11_5_gets_that_wrong() -> None:
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


def test_no_test_blocks_for_longer_than_a_poll() -> None:
    """A poll inside a bounded loop may sleep; a bare wait for something to happen may not."""
    assert sleeps("import time\ntime.sleep(1)\n") == [2]
    assert sleeps("from time import sleep as nap\nnap(1)\n") == [2]
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in GATED
        if path.suffix == ".py" and "tests" in path.relative_to(ROOT).parts
        for line in sleeps(path.read_text())
        if not in_loop(path.read_text(), line)
    }
    assert found == set()


def in_loop(source: str, line: int) -> bool:
    """Whether the line lies inside a `while` or `for`."""
    loops = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.While | ast.For))
    return any(loop.lineno <= line <= (loop.end_lineno or line) for loop in loops)
