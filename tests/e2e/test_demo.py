"""`reverie demo`, the first command of the README."""

from __future__ import annotations

import subprocess

from reverie.testing.models import model_home
from reverie.testing.servers import TestRun
from tests.e2e.runner import ANY_PORT, COMMAND


def test_the_sample_day_shows_all_that_it_should_on_a_fresh_data_folder(
    test_run: TestRun,
) -> None:
    flags = [*ANY_PORT, "--set", f"model_dir={model_home() / 'models'}"]
    home = test_run.new_folder("demo") / "home"
    done = subprocess.run(
        [*COMMAND, "demo", "--once", "--home", str(home), *flags],
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "That was the day" in done.stdout
