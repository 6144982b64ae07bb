"""The console script: runs a hook with few imports, and any other command through `main`."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress


def main() -> None:
    """Runs a hook with few imports, and any other command through `main`."""
    if sys.argv[1:2] == ["hook"]:
        from reverie.agent.hooks.command import main as hook

        code = hook()
        atexit.register(_exit_at_once, code)
        sys.exit(code)
    from reverie.cli.app.main import main as command

    command()


def _exit_at_once(code: int) -> None:
    """Ends the process at once: an orderly interpreter shutdown would make the agent wait."""
    for stream in (sys.stdout, sys.stderr):
        # The agent may have closed a stream (then it is None), or have ended.
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
