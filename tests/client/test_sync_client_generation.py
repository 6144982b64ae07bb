"""The synchronous client matches what is generated from the asynchronous one."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import reverie.client
from reverie.domain.core.errors import Unavailable

CLIENT = Path(__file__).parents[2] / "libs" / "reverie" / "client"
FACES = {
    "memories": "Memories",
    "graph": "Graph",
    "activity": "Activity",
    "administration": "Administration",
    "streams": "Streams",
}


def test_the_client_without_await_is_written_from_the_one_with_it() -> None:
    for name in FACES:
        written = (CLIENT / f"sync_{name}.py").read_text()
        assert written == sync_face(name), (
            "run `python -m tests.client.test_sync_client_generation`"
        )


def test_importing_the_client_loads_neither_the_http_client_nor_the_bodies() -> None:
    code = (
        "import sys; from reverie.client import AsyncReverie, Reverie; "
        "print([m for m in ('aiohttp', 'pydantic', 'tenacity') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_everything_that_the_client_names_can_be_imported_from_it() -> None:
    for name in reverie.client.__all__:
        assert getattr(reverie.client, name).__name__ == name
    assert reverie.client.Unavailable is Unavailable


def sync_face(name: str) -> str:
    """The module with the same calls, made to wait."""
    tree = ast.parse((CLIENT / f"{name}.py").read_text())
    kept = [node for node in tree.body if _is_kept(node)]
    for node in kept:
        if isinstance(node, ast.If):
            node.orelse = []
    made = ast.Module([node for node in kept if not isinstance(node, ast.ClassDef)], [])
    face = next(node for node in kept if isinstance(node, ast.ClassDef))
    calls = [
        _waiting(node)
        for node in face.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    text = [
        f'"""Generated from `{name}.py`: the same calls for synchronous code."""',
        ast.unparse(made),
        f'class Sync{face.name}(SyncClientBase):\n    """{ast.get_docstring(face)}"""\n',
        *calls,
    ]
    return _formatted("\n\n".join(text))


def _is_kept(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return False
    if isinstance(node, ast.ImportFrom):
        return node.module != "reverie.client.base"
    return isinstance(node, ast.If | ast.Import) or (
        isinstance(node, ast.Assign | ast.ClassDef) and not ast.unparse(node).startswith(("_", "@"))
    )


def _waiting(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    told = ast.get_docstring(node, clean=False)
    returns = ast.unparse(node.returns or ast.Constant(None))
    flows = returns.startswith("AsyncIterator")
    given = [one.arg for one in node.args.args[1:]]
    given += [f"{one.arg}={one.arg}" for one in node.args.kwonlyargs]
    given += [f"**{node.args.kwarg.arg}"] if node.args.kwarg else []
    call = f"self._reverie.{node.name}({', '.join(given)})"
    return (
        f"    def {node.name}({ast.unparse(node.args)}) -> {returns.removeprefix('Async')}:\n"
        f'        """{told}"""\n'
        f"        return self._portal.{'iterate' if flows else 'run'}({call})\n"
    )


def _formatted(text: str) -> str:
    imports = (
        "from reverie.client.streams import StreamEvent\n"
        "from reverie.client.sync_base import SyncClientBase\n"
    )
    text = text.replace("if TYPE_CHECKING:", f"{imports}\nif TYPE_CHECKING:", 1)
    text = text.replace("import AsyncIterator", "import Iterator")
    ruff = [sys.executable, "-m", "ruff"]
    at = ["--stdin-filename", str(CLIENT / "made.py"), "-"]
    for step in (["check", "--fix-only", "--quiet", "--unsafe-fixes"], ["format"]):
        done = subprocess.run([*ruff, *step, *at], input=text, capture_output=True, text=True)
        text = done.stdout
    return text


def write() -> None:
    """Writes the modules."""
    for name in FACES:
        (CLIENT / f"sync_{name}.py").write_text(sync_face(name))


if __name__ == "__main__":
    write()
