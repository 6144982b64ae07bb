"""Forked services behave like services that were started separately."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import psutil  # type: ignore[import-untyped, unused-ignore]
import pytest

from chaos.crashes.service_processes import World, served
from reverie.domain.core.errors import Unavailable
from reverie.embedded import forker as product
from reverie.embedded import processes
from reverie.embedded.home import open_home
from reverie.embedded.service_processes import ServiceProcess
from reverie.runtime.service import EXIT_CONFIG
from reverie.testing.servers import TestRun
from tests.support.stack import eventually

pytestmark = pytest.mark.skipif(not product.ABLE, reason="services are forked on Linux alone")
IDS = """
import os
from reverie.domain.core.ids import new_id
new_id()
for _ in range(2):
    if not os.fork():
        print(*(new_id().hex[-12:] for _ in range(3)), flush=True)
        os._exit(0)
    os.wait()
"""


async def test_a_forked_service_has_a_session_a_name_and_an_end_of_its_own(world: World) -> None:
    parent = psutil.Process(world.forker.made.pid)
    async with served(world, "staleness") as one, served(world, "dream") as other:
        for name, service in (("staleness", one), ("dream", other)):
            pid = service.process.pid
            assert psutil.Process(pid).ppid() == parent.pid
            assert os.getsid(pid) == os.getpgid(pid) == pid
            assert processes.is_running(pid, "reverie", "serve", name)
            assert psutil.Process(pid).open_files()[0].path == str(service.log)
        # That of numpy's linear algebra ends itself before a fork.
        assert parent.num_threads() == 1
        one.process.terminate()
        assert await one.process.wait() == 0
        assert other.process.returncode is None
        await other.kill()
        assert other.process.returncode == -9
    wrong = await world.forker.start("recall", {"HOME": str(world.folder)}, world.folder / "wrong")
    assert await wrong.wait() == EXIT_CONFIG
    assert "database_url: is not set" in (world.folder / "wrong").read_text()


def test_processes_that_are_forked_make_ids_of_their_own() -> None:
    said = subprocess.run([sys.executable, "-c", IDS], capture_output=True, text=True, check=True)
    assert len(set(said.stdout.split())) == 6


async def test_where_the_forker_was_killed_a_service_is_started_by_itself(
    test_run: TestRun,
) -> None:
    home = open_home(test_run.new_folder("forker") / "home")
    made = product.Forker(home.logs / "forker.log", os.environ)
    made.start()
    os.kill(made.pid, signal.SIGKILL)
    service = ServiceProcess("dream", home, {"REVERIE_HOME": str(home.root)}, 0, made)
    await asyncio.to_thread(service.start)

    async def ended() -> bool:
        return not service.is_running()

    await eventually(ended, 40)
    assert "database_url: is not set" in service.log.read_text()
    assert not made.is_running()
    with pytest.raises(Unavailable, match="forker"):
        made.fork("dream", {}, service.log, 0)
