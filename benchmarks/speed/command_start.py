"""Measures the processor and wall-clock time of starting a command.

    python -m benchmarks.speed.command_start [RUNS]

`recall` needs a running system, as `REVERIE_HOME` or `REVERIE_GATEWAY_URL` name it.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time

REVERIE = [sys.executable, "-P", "-m", "reverie.cli.app.entrypoint"]
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "reverie --help": [*REVERIE, "--help"],
    "reverie recall": [*REVERIE, "recall", "how do we deploy"],
}


def took(command: list[str]) -> tuple[float, float]:
    """Seconds of processor time and of the clock that one run takes."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, check=False, env=os.environ)
    clock, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(done.stderr.decode().strip(), file=sys.stderr)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, clock


def main(runs: int) -> None:
    """Prints the medians."""
    for name, command in COMMANDS.items():
        took(command)
        each = [took(command) for _ in range(runs)]
        used, clock = (1000 * statistics.median(column) for column in zip(*each, strict=True))
        print(f"{name:16} {used:6.0f} ms of processor time, {clock:6.0f} ms by the clock")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
