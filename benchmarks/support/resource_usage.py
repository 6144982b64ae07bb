"""Processor time and memory of processes, and disk space of tables."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.support.common import Running
from reverie.embedded.home import open_home, read_run_file
from reverie.embedded.reporting import ALL, DERIVE
from reverie.embedded.servers import postgres

_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
_BYTES = """
select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'reverie' and c.relkind = 'r'
"""


@dataclass
class ProcessorTimes:
    """Milliseconds of processor time, filled in at the end."""

    gateway: float = 0.0
    postgres: float = 0.0
    deriving: float = 0.0


@contextmanager
def processor_time(system: Running) -> Iterator[ProcessorTimes]:
    """What the services, all of Postgres, and what derives take while it is open."""
    server = postgres_of(system)
    pids = read_run_file(open_home(system.home), "services")
    gateway, deriving = int(pids[ALL]), int(pids[DERIVE])
    taken = ProcessorTimes(-_of_process(gateway), -_of_family(server.pid), -_of_process(deriving))
    yield taken
    taken.gateway += _of_process(gateway)
    taken.postgres += _of_family(server.pid)
    taken.deriving += _of_process(deriving)


@contextmanager
def processes(system: Running) -> Iterator[dict[str, float]]:
    """What each process of the system, all of Postgres, and this one take, by name, while open."""
    pids: dict[str, int] = read_run_file(open_home(system.home), "services")
    server = postgres_of(system).pid
    begun = {name: _of_process(pid) for name, pid in pids.items()}
    postgres_begun, own_begun = _of_family(server), time.process_time()
    taken: dict[str, float] = {}
    yield taken
    taken["load"] = (time.process_time() - own_begun) * 1000
    taken["postgres"] = _of_family(server) - postgres_begun
    taken.update({name: _of_process(pid) - begun[name] for name, pid in pids.items()})


def postgres_of(system: Running) -> postgres.PostgresInstance:
    """The Postgres that the system runs on."""
    server = postgres.find(open_home(system.home))
    assert server is not None
    return server


def table_bytes(system: Running) -> int:
    """The bytes of all tables with their indexes."""
    with psycopg.connect(postgres_of(system).admin_url(), autocommit=True) as connection:
        row = connection.execute(_BYTES).fetchone()
    assert row is not None
    return int(row[0])


def _of_process(pid: int) -> float:
    return sum(_fields(pid)[11:13]) * _TICK_MS


def _of_family(parent: int) -> float:
    """A process, its children, and those of them that ended."""
    whole = float(sum(_fields(parent)[11:15]))
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = _fields(int(place.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
        whole += sum(fields[11:13]) if fields[1] == parent else 0
    return whole * _TICK_MS


def _fields(pid: int) -> list[int]:
    """The numbers of /proc/PID/stat from the state on, which counts as 0."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [0, *map(int, words[1:])]
