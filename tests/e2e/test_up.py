"""`reverie up` as root and as a user: start, use, kill, restart, stop."""

from __future__ import annotations

import json
import os
import pwd
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.cli.app.main import app
from reverie.embedded.home import open_home, write_run_file
from reverie.embedded.lock import hold_home_lock
from reverie.embedded.probe import fetch_health
from reverie.embedded.processes import is_alive
from reverie.testing.servers import DatabaseUrls, NatsServer, TestRun
from tests.support.reverie_up import ANY_PORT, NO_MODELS, Up, as_user, gone, post, until

USER = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name

NOWHERE = [
    flag
    for port, name in enumerate(("recall", "ingest", "dream", "staleness"), start=1)
    for flag in ("--set", f"{name}_port={port}")
]
"""Ports at which nothing answers, whoever else runs Reverie on this machine."""

_IN_ONE = ("--set", "ingest_role=both")
"""Derives in the process of the services, so that one of them loads the model."""

pytestmark = pytest.mark.timeout(300)
KILLED = ("all", "derive", "postgres", "nats")

Start = Callable[..., Up]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Up] = []

    def run(home: Path, *flags: str, prefix: list[str] | None = None) -> Up:
        # A model fewer to load at each start.
        up = Up(home, *ANY_PORT, "--set", "recall_sparse=off", *flags, prefix=prefix)
        started.append(up)
        return up

    yield run
    for up in started:
        up.clean_up()


def _without_models(home: Path) -> tuple[str, ...]:
    return ("--set", f"embedding_model_dir={home}", *NO_MODELS)


def test_up_as_another_user_restarts_dead_processes_and_adopts_orphaned_servers(
    start: Start, test_run: TestRun
) -> None:
    """All of it as a user without rights, where root runs the tests."""
    closed = test_run.new_folder("closed")
    closed.chmod(0o700)
    os.chown(closed, pwd.getpwnam(USER).pw_uid, -1)
    home = closed / "home"
    # Nothing needs a model before the second start, and to load them takes most of the first.
    first = start(home, *_without_models(home), prefix=as_user(USER))
    addresses = first.ready()
    status = CliRunner().invoke(app, ["status", "--json", "--home", str(home)])
    found = json.loads(status.stdout)
    assert (status.exit_code, found["ready"]) == (0, True), found
    assert {part["name"] for part in found["components"]} >= {"recall", "postgres", "nats"}
    assert first.command("doctor").returncode == 0
    assert set(first.pids().values()) <= first.descendants()
    gateway, key = addresses["gateway"], (home / "secrets" / "api_key").read_text().strip()
    post(f"{gateway}/v1/remember", key, {"content": "Herons nest behind the mill."})
    post(f"{gateway}/v1/remember", key, {"content": "The lighthouse keeper prefers oolong."})
    before = first.pids()
    for name in KILLED:
        os.kill(before[name], signal.SIGKILL)
    until(lambda: all(pid != before[name] for name, pid in first.pids().items() if name in KILLED))
    until(lambda: all(fetch_health(url).is_ready for url in addresses["services"].values()))
    found = post(f"{gateway}/v1/recall", key, {"query": "where do herons nest"})
    assert "mill" in found["memories"][0]["content"]

    before = first.pids()
    first.process.kill()
    first.process.wait()
    services = {pid for name, pid in before.items() if name not in {"postgres", "nats"}}
    until(lambda: gone(services))
    assert is_alive(before["postgres"])
    assert is_alive(before["nats"])
    report = CliRunner().invoke(app, ["doctor", "--home", str(home)]).stdout
    assert report.count("runs without a supervisor, on port") == 2

    second = start(home, *_IN_ONE, prefix=as_user(USER))
    gateway = second.ready()["gateway"]
    after = second.pids()
    assert (after["postgres"], after["nats"]) == (before["postgres"], before["nats"])
    found = post(f"{gateway}/v1/recall", key, {"query": "what does the lighthouse keeper prefer"})
    assert "oolong" in found["memories"][0]["content"]
    everyone = second.descendants() | set(after.values())
    assert second.end(signal.SIGINT) == (0, "")
    assert gone(everyone)
    assert CliRunner().invoke(app, ["status", "--home", str(home), *NOWHERE]).exit_code == 3


def test_a_second_up_on_the_same_home_names_the_running_one(
    start: Start, reverie_home: Path
) -> None:
    home = open_home(reverie_home)
    write_run_file(home, "up", {"pid": 4711, "gateway": "http://127.0.0.1:3456"})
    with hold_home_lock(home):
        code, said = start(reverie_home).end_by_itself()
    assert code == 6
    assert len(said.splitlines()) == 1
    assert "4711" in said
    assert "http://127.0.0.1:3456" in said


def test_with_two_urls_the_services_run_without_embedded_servers(
    start: Start, reverie_home: Path, empty_database: DatabaseUrls, nats_server: NatsServer
) -> None:
    urls = ("--database-url", empty_database.admin_url, "--nats-url", nats_server.url)
    key = "api_key=rv_chosen_by_me_0123456789"
    none = _without_models(reverie_home)
    up = start(reverie_home, *urls, "--set", key, *_IN_ONE, *none)
    gateway = up.ready()["gateway"]
    assert set(up.pids()) == {"all"}
    assert not (reverie_home / "postgres").exists()
    answer = post(f"{gateway}/v1/remember", "rv_chosen_by_me_0123456789", {"content": "Elsewhere."})
    assert answer["status"] == "created"
    assert up.end(signal.SIGTERM)[0] == 0


def test_an_invalid_setting_is_one_line_and_leaves_nothing_behind(
    start: Start, reverie_home: Path
) -> None:
    code, said = start(reverie_home, "--host", "203.0.113.7").end_by_itself()
    assert code == 1
    assert json.loads(said)["detail"].startswith("host: cannot listen on 203.0.113.7")
    assert len(said.splitlines()) == 1
    assert not (reverie_home / "postgres").exists()
