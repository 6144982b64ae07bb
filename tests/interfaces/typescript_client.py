"""Builds the TypeScript client, and makes calls with it in a process of node."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "clients" / "typescript"
OPENAPI = Path(str(files("reverie_services.recall.routes") / "openapi.json"))
MAX_LINE_BYTES = 64 * 1024 * 1024


class TypeScriptClient:
    """A running client. Calls take turns."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()

    async def call(self, url: str, key: str, method: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Returns `data`, or `error` with its code and message."""
        asked = {"url": url, "key": key, "method": method, "fields": fields}
        assert self._process.stdin
        assert self._process.stdout
        async with self._turn, asyncio.timeout(60):
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            answer: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return answer


def builds_client() -> bool:
    """Whether the client is tested: by `make adapters`, where npm can fetch what builds it."""
    asked = os.environ.get("REVERIE_TEST_STEPS") == "all"
    return asked and bool(shutil.which("node") and shutil.which("npm"))


async def build_client(folder: Path) -> None:
    """Builds the package from the OpenAPI document of the gateway, in a folder of its own."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    environment = {**os.environ, "REVERIE_OPENAPI": str(OPENAPI)}
    for command in ("npm ci --no-audit --no-fund", "npm run build"):
        process = await asyncio.create_subprocess_exec(
            *command.split(), cwd=folder, env=environment, stdout=PIPE
        )
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()


@asynccontextmanager
async def run_client(folder: Path) -> AsyncIterator[TypeScriptClient]:
    """Runs the client that was built in the folder."""
    process = await asyncio.create_subprocess_exec(
        "node", "test/interface.mjs", cwd=folder, stdin=PIPE, stdout=PIPE, limit=MAX_LINE_BYTES
    )
    try:
        yield TypeScriptClient(process)
    finally:
        assert process.stdin
        process.stdin.close()
        await process.wait()
