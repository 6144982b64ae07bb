"""Runs the commands of agents in a sandbox: bubblewrap, with one folder and without network."""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from pathlib import Path

from reverie.domain.core.errors import Misconfigured

COMMAND_SECONDS = 120.0
MAX_OUTPUT_BYTES = 200_000
MEMORY_KIB = 4 * 1024 * 1024
"""Address space of a process."""

_BWRAP = "bwrap"
_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/etc/ssl")
_ISOLATION = (
    *("--unshare-all", "--die-with-parent", "--new-session", "--clearenv"),
    *("--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"),
    *("--setenv", "HOME", "/work", "--setenv", "LANG", "C.UTF-8"),
    *("--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),  # noqa: S108
    *(word for folder in _SYSTEM_FOLDERS for word in ("--ro-bind-try", folder, folder)),
)
"""A command sees no other process, so it cannot read the keys of the engine."""
_SHELL = ("sh", "-c", f'ulimit -v {MEMORY_KIB}; exec sh -c "$1"', "sh")


def check_sandbox(folder: Path | None) -> None:
    """Raises `Misconfigured` where commands cannot run."""
    if folder is None:
        raise Misconfigured("engine_tools", "run_command needs engine_folder: set it")
    if shutil.which(_BWRAP) is None:
        raise Misconfigured(
            "engine_tools", "run_command needs bubblewrap (bwrap): install it, or remove the tool"
        )


async def run_in_sandbox(folder: Path, command: str) -> str:
    """What a command prints, and how it ended. It is killed when the caller is cancelled."""
    process = await asyncio.create_subprocess_exec(
        *(_BWRAP, *_ISOLATION, "--bind", str(folder), "/work", "--chdir", "/work"),
        *(*_SHELL, command),
        # Its first process keeps the environment of bubblewrap, where a command can read it.
        env={"PATH": os.environ.get("PATH", os.defpath)},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
    )
    assert process.stdout is not None
    output = bytearray()
    try:
        async with asyncio.timeout(COMMAND_SECONDS):
            while piece := await process.stdout.read(65536):
                output += piece[: max(MAX_OUTPUT_BYTES - len(output), 0)]
            end = f"exit code {await process.wait()}"
    except TimeoutError:
        end = f"stopped after {COMMAND_SECONDS:.0f} s"
    finally:
        if process.returncode is None:
            process.kill()
            # All that held the pipe dies with it, so the rest of the output has an end.
            while await process.stdout.read(65536):
                pass
            await process.wait()
    cut = "\n(cut)" if len(output) == MAX_OUTPUT_BYTES else ""
    return f"{output.decode(errors='replace')}{cut}\n({end})".lstrip("\n")
