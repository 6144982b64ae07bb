"""What nobody waits for gives way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SAY = """
import os
from reverie.runtime.manners import give_way
give_way(7)
print(os.nice(0), open("/proc/self/autogroup").read())
"""


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="no groups by session")
def test_a_process_gives_way_with_the_session_that_it_leads_and_with_no_other() -> None:
    def told(leads: bool) -> list[str]:
        command = [sys.executable, "-c", SAY]
        return subprocess.check_output(command, text=True, start_new_session=leads).split()

    assert told(True)[-1] == "7"
    # A session from before there were groups has none, and its file is empty.
    assert told(False)[1:] == Path("/proc/self/autogroup").read_text().split()
