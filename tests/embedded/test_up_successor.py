"""What `reverie up` is once all is ready, and the children that it inherits."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from reverie.embedded.home import open_home
from reverie.embedded.processes import InheritedChild, stop
from reverie.embedded.supervision.hand_over import HandOver
from reverie.embedded.supervision.process_watch import STOP_SIGNALS


def test_an_inherited_child_is_reaped_with_its_exit_code() -> None:
    code = "raise SystemExit(len(input()))"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        inherited = InheritedChild(child.pid)
        assert inherited.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            inherited.wait(0.01)
        child.stdin.write(b"abc\n")
        child.stdin.flush()
        assert inherited.wait(30) == 3
        with pytest.raises(ChildProcessError):
            os.waitpid(child.pid, os.WNOHANG)
    assert inherited.poll() == 3
    assert InheritedChild(os.getppid()).poll() is None


def test_a_child_that_was_waited_for_is_sent_no_signal() -> None:
    """Its number may be another's by then; here that of a process that only seems to be it."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        stop(other.pid, [(signal.SIGKILL, 5.0)], ended)
        other.communicate(b"\n", timeout=30)
    assert other.returncode == 0


@pytest.mark.parametrize(
    ("as_json", "expected"), [(False, "Stopping Reverie\nReverie stopped\n"), (True, "")]
)
def test_the_successor_says_that_it_stops(tmp_path: Path, as_json: bool, expected: str) -> None:
    assert _stop_successor(tmp_path, as_json) == (0, expected, "")


def test_an_error_of_the_successor_is_one_line(tmp_path: Path) -> None:
    (open_home(tmp_path).run / "up.json").mkdir()
    code, _, said = _stop_successor(tmp_path, as_json=False)
    assert code == 1
    assert len(said.splitlines()) == 1
    assert str(tmp_path / "run" / "up.json") in said


def _stop_successor(folder: Path, as_json: bool) -> tuple[int, str, str]:
    """Stops a successor of nothing before it handles signals; its code, and what it printed."""
    descriptors = [os.open(os.devnull, os.O_RDWR) for _ in range(3)]
    caller = {"as_json": as_json, "search": None}
    lock, lifeline, stdin = descriptors
    handed = HandOver(str(open_home(folder).root), lock, lifeline, stdin, {}, {}, None, caller)
    (folder / "state").write_text(json.dumps(asdict(handed)))
    state = os.open(folder / "state", os.O_RDONLY)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        successor = subprocess.Popen(
            [sys.executable, "-m", "reverie.cli.operate.up_successor", str(state)],
            pass_fds=[state, *descriptors],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for descriptor in (state, *descriptors):
            os.close(descriptor)
    with successor:
        successor.terminate()
        said = successor.communicate(timeout=60)
        return (successor.returncode, *said)


async def test_a_hand_over_that_cannot_be_written_leaves_what_stops_everything(
    tmp_path: Path,
) -> None:
    handed = HandOver(str(tmp_path / "gone"), 0, 0, 0, {}, {}, None, {})
    with pytest.raises(FileNotFoundError):
        await handed.execute("nothing", asyncio.Event())
    assert await asyncio.to_thread(tmp_path.exists)
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
