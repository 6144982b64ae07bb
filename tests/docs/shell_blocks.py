"""Pastes blocks of commands of a page into interactive shells, as a reader does.

Run as a program, it does what the README says from a clean clone in an empty home, in bash and in
zsh: `make newcomer`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHELLS: Mapping[str, tuple[str, ...]] = {
    "bash": ("bash", "--noprofile", "--norc", "-i"),
    "zsh": ("zsh", "-f", "-i"),
}
GATEWAY = "http://127.0.0.1:3456"
PASTE_SECONDS = 180
ENVIRONMENT_SECONDS = 1800
DROPPED_VARIABLES = ("REVERIE_", "PYTHON", "VIRTUAL_ENV")
"""The beginnings of what a newcomer has not set."""


def blocks_of(page: str, heading: str) -> list[str]:
    """The blocks of commands below a heading, up to the next one of its level."""
    text = (ROOT / page).read_text()
    [section] = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)


def paste(shell: str, commands: str, folder: Path, environment: Mapping[str, str]) -> str:
    """What a shell prints that reads the commands as its user types them."""
    done = subprocess.run(
        SHELLS[shell],
        input=f"{commands}\nexit\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**environment, "PS1": "", "PS2": "", "PROMPT": "", "TERM": "dumb"},
        timeout=PASTE_SECONDS,
        check=False,
        start_new_session=True,
    )
    return done.stdout


@contextmanager
def keep_running(
    command: str, until: str, folder: Path, environment: Mapping[str, str], seconds: float
) -> Iterator[str]:
    """What the command printed up to that text, while it runs; then Ctrl-C."""
    process = subprocess.Popen(
        ["sh", "-c", f"exec {command}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    reader = threading.Thread(target=process.stdout.read, daemon=True)
    try:
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if until in line:
                break
        else:
            raise AssertionError(f"{command} ended without {until!r}:\n{''.join(lines)}")
        # Nothing may wait for a reader of what it prints.
        reader.start()
        yield "".join(lines)
    finally:
        timer.cancel()
        # As a terminal does: to make and to what it runs.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
        if reader.is_alive():
            reader.join()
        process.stdout.close()


def read_gateway(printed: str) -> str:
    """The address that `reverie up` printed."""
    [gateway] = {
        line.split()[1] for line in printed.splitlines() if line.split()[:1] == ["gateway"]
    }
    return gateway


def first_steps(printed: str) -> str:
    """The first steps of the README, with the address that `reverie up` printed."""
    block = "\n".join(blocks_of("README.md", "First steps"))
    assert GATEWAY in block
    return block.replace(GATEWAY, read_gateway(printed))


def check_first_steps(printed: str) -> None:
    """Raises `AssertionError` unless the answers are those that the README promises."""
    answers = [line for line in printed.splitlines() if line.startswith("{")]
    recalled = [line for line in answers if line.startswith('{"memories"')]
    assert len(recalled) == 2, printed
    first = [re.findall(r'"content": ?"(.*?)"', line)[0] for line in recalled]
    assert "Prices are kept in cents" in first[0], first
    assert re.search("orders.created_at|batches of 500", first[1]), first
    assert "<reverie-memory>" in printed
    context = printed.split("<reverie-memory>")[1].split("</reverie-memory>")[0]
    assert "batches of 500" in context
    stale = printed.split("</reverie-memory>")[-1]
    assert re.search(r"^\w{8}  gone \d\.\d\d  decision$", stale, re.M), stale
    assert "deleted src/cart/price.py" in stale
    for wrong in ("command not found", "no matches found", "Traceback", "problem"):
        assert wrong not in printed, printed


def greeting_example(printed: str) -> str:
    """The commands that `reverie up` prints to try it."""
    block = printed.split("Try it:")[1]
    lines = [line for line in block.splitlines() if line.strip()]
    return "\n".join(lines[: next(n for n, line in enumerate(lines) if "/v1/recall" in line) + 1])


def _check_chat(printed: str) -> None:
    first, second = printed.split("The second day")
    assert "fowler: Decided. Prices are kept as whole cents" in first
    assert "beck: One test: 0.10 + 0.20 is 30 cents, exactly." in first
    assert "torvalds: Good." in first
    assert "beck: I compute it in whole cents, as we decided" in second
    assert "What the first day decided was used on the second." in second


def _follow_readme(shell: str, clone: Path, home: Path) -> None:
    home.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(DROPPED_VARIABLES)}
    environment = {**kept, "HOME": str(home)}
    demo, up = blocks_of("README.md", "Try it")
    with keep_running(demo, "rm -r ", clone, environment, ENVIRONMENT_SECONDS) as printed:
        assert "The sample day is complete" in printed
    assert [one.name for one in home.iterdir() if "reverie" in one.name] == [".reverie-demo"]
    chat = [str(clone / ".venv" / "bin" / "reverie"), "demo", "chat", "--once"]
    _check_chat(subprocess.check_output(chat, text=True, env=environment, timeout=PASTE_SECONDS))
    with keep_running(up, "Ctrl-C stops", clone, environment, PASTE_SECONDS) as printed:
        tried = paste(shell, greeting_example(printed), clone, environment)
        assert "behind the buoy" in tried.split('"memories"')[1][:400], tried
        check_first_steps(paste(shell, first_steps(printed), clone, environment))
    print(f"{shell}: every command of the README answered as written")


def main() -> None:
    """Follows the README from a clean clone, in an empty home for each shell."""
    missing = [shell for shell in SHELLS if shutil.which(shell) is None]
    if missing:
        sys.exit(f"install {', '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        clone = Path(folder) / "reverie"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        for shell in SHELLS:
            _follow_readme(shell, clone, Path(folder) / shell)


if __name__ == "__main__":
    main()
