"""Pytest hooks and fixtures: the run's servers, databases, and the four running services."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path

import aiohttp
import pytest
import structlog

from reverie.inference import model_manager
from reverie.runtime.http import reverse_proxy
from reverie.store.db import connections
from reverie.testing import models, servers
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls, TestRun, fresh_database, own_nats
from reverie_services.console import live
from reverie_services.ingest.enrich import derivation_timeout
from tests.support import tables
from tests.support.background_loop import BackgroundResource, open_in_background
from tests.support.log_capture import restored_logging
from tests.support.stack import VAULT_KEY, Stack, open_stack, running_stack
from tests.support.store_setup import Store, open_store, open_store_apart

FOLDER = "PYTEST_REVERIE_FOLDER"
LONG = (
    *("test_real_sessions.py", "test_operations_guide.py", "test_openapi_conformance.py"),
    *("e2e", "test_telemetry_end_to_end.py"),
    *("test_tenant_isolation.py", "test_reindex.py", "test_input_limits.py"),
)
"""Files and folders of tests that take seconds each, the longest first."""
TOGETHER = ("test_query_plans.py", "test_in_a_browser.py", "test_every_interface.py")
"""Files whose tests share what takes half a minute to make: one worker begins with each."""
PARTITIONS = 2
"""Of each table, so that tenants lie apart: a database lasts one test, and a connection too."""
MEMBERSHIP = pytest.StashKey[int]()
RUN = pytest.StashKey[servers.TestRun]()


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _workers() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def _is_setting(name: str) -> bool:
    return name.startswith("REVERIE_") and not name.startswith("REVERIE_TEST_")


def pytest_configure(config: pytest.Config) -> None:
    """Begin a run, or join it as one of its parallel workers."""
    for name in [n for n in os.environ if _is_setting(n)]:
        del os.environ[name]
    if _is_worker(config):
        run = servers.TestRun(Path(os.environ[FOLDER]), PARTITIONS)
    else:
        run = replace(servers.create_run(), partitions=PARTITIONS)
        os.environ[FOLDER] = str(run.folder)
    config.stash[RUN] = run
    config.stash[MEMBERSHIP] = servers.join_run(run)
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each worker begins with its part of the files, and finds the others' parts compiled.

    To compile all of them takes longer than to collect them.
    """
    config = session.config
    if not _is_worker(config) or config.args_source is not config.ArgsSource.TESTPATHS:
        return
    workers, worker = _workers(), os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")
    files = sorted((config.rootpath / "tests").rglob("test_*.py"))
    for file in files[int(worker) % workers :: workers]:
        # What cannot be imported, or skips itself, pytest tells when it comes to it.
        with suppress(Exception, pytest.skip.Exception):
            import_module(".".join(file.relative_to(config.rootpath).with_suffix("").parts))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each of several workers begins with its part of the long tests, so that none comes last."""
    workers = _workers()
    files = [[item for item in items if item.path.name == name] for name in TOGETHER]
    placed = set(chain(*files))
    long = [item for item in items if item not in placed and _is_long(config, item)]
    long.sort(key=_place)
    placed |= set(long)
    rest = [item for item in items if item not in placed]
    count, items[:] = len(items), []
    for worker in range(workers):
        first = [*chain(*files[worker::workers]), *long[worker::workers]]
        # What worksteal hands to this worker: as many as to each of those that follow.
        others = max(0, (count - len(items)) // (workers - worker) - len(first))
        items += first + rest[:others]
        del rest[:others]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """What was collected stays: nobody looks through it for garbage, again and again.

    For the rest a tenth of the time of all tests went into it, by Python's own threshold.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _is_long(config: pytest.Config, item: pytest.Item) -> bool:
    limit = item.get_closest_marker("timeout")
    patient = limit is not None and limit.args[0] > float(config.getini("timeout"))
    return patient or _place(item) < len(LONG)


def _place(item: pytest.Item) -> int:
    """The first of those named in `LONG` that the test is of, else behind them all."""
    named = (place for place, name in enumerate(LONG) if name in item.path.parts)
    return next(named, len(LONG))


@pytest.fixture(scope="session", autouse=True)
def one_process() -> Iterator[None]:
    """All services of a worker's tests share the loaded models, and one event loop at a time.

    So a gateway waits longer for a connection than it would for a service of its own, and so does
    a memory for its vectors. Pages of the console are told of changes sooner. Connections outlast
    the tests that need no service: a new one plans everything again. What the services warn of goes
    past `sys.stdout`, to which a command in this process may be writing its answer.
    """
    with (
        pytest.MonkeyPatch.context() as patch,
        open(1, "w", buffering=1, encoding="utf-8", closefd=False) as logged,
    ):
        # Rich shows the variables of every frame of an exception: up to 15 seconds for one of them.
        plain = structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        )
        structlog.configure(
            processors=[*structlog.get_config()["processors"][:-1], plain],
            logger_factory=structlog.PrintLoggerFactory(logged),
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        )
        patch.setattr(model_manager, "load_embedder", models.load_embedder_once)
        patch.setattr(model_manager, "load_sparse_encoder", models.load_sparse_encoder_once)
        patch.setattr(reverse_proxy, "_CONNECT_SECONDS", 20.0)
        patch.setattr(live, "POLL_SECONDS", 1.0)
        patch.setattr(derivation_timeout, "EMBEDDING_SECONDS", 200.0)
        patch.setattr(connections, "IDLE_CONNECTION_SECONDS", 300.0)
        yield
        tables.close_cached_connections()


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """How a command of a test logs, and to which stream, ends with the test."""
    with restored_logging():
        yield


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the run; the last one out ends the servers."""
    os.close(config.stash[MEMBERSHIP])
    if not _is_worker(config):
        servers.end_run(config.stash[RUN])


@pytest.fixture(scope="session")
def test_run(request: pytest.FixtureRequest) -> servers.TestRun:
    """The folder of this run; `new_folder(name)` is cleared away with it."""
    return request.config.stash[RUN]


@pytest.fixture
def reverie_home(test_run: servers.TestRun) -> Path:
    """A fresh REVERIE_HOME; servers left in it are ended with the run."""
    return test_run.new_folder("home")


@pytest.fixture(scope="session")
def postgres_server(test_run: servers.TestRun) -> str:
    """A superuser's URL of the run's one Postgres, to its database `postgres`."""
    return servers.ensure_postgres(test_run).admin_url("postgres")


@pytest.fixture
def database(test_run: servers.TestRun) -> Iterator[servers.DatabaseUrls]:
    """A migrated database of the test's own: `.admin_url`, `.service_url`, `.name`."""
    with servers.fresh_database(test_run) as fresh:
        yield fresh


@pytest.fixture(scope="session")
def shared_database(test_run: servers.TestRun) -> Iterator[servers.DatabaseUrls]:
    """One for all tests of a process that write and look at tenants of their own alone."""
    with servers.fresh_database(test_run) as fresh:
        yield fresh


@pytest.fixture
async def store(database: servers.DatabaseUrls) -> AsyncIterator[Store]:
    """The store over a database of the test's own, with the tenants `one` and `two`."""
    async with open_store(database) as made:
        yield made


@pytest.fixture
async def shared_store(shared_database: servers.DatabaseUrls) -> AsyncIterator[Store]:
    """The store over the shared database, with two tenants of the test's own."""
    async with open_store_apart(shared_database) as made:
        yield made


@pytest.fixture
def empty_database(test_run: servers.TestRun) -> Iterator[servers.DatabaseUrls]:
    """A database without tables, to migrate: `.admin_url`, `.service_url`, `.name`."""
    with servers.empty_database(test_run) as empty:
        yield empty


@pytest.fixture
def nats_server(test_run: servers.TestRun) -> Iterator[servers.NatsServer]:
    """A NATS of the test's own: `.url`, `.stop()`, `.kill()`, `.start()` (same port)."""
    with servers.own_nats(test_run) as server:
        yield server


@pytest.fixture
def nats_url(nats_server: servers.NatsServer) -> str:
    """The URL of the test's own NATS."""
    return nats_server.url


@pytest.fixture(scope="session")
def system(test_run: TestRun) -> Iterator[BackgroundResource[Stack]]:
    """All four services for the tests of a process, each of which takes a tenant: `stack`."""
    with (
        fresh_database(test_run) as database,
        own_nats(test_run) as nats,
        open_in_background(
            open_stack(database, nats.url, model_home(), vault_key=VAULT_KEY)
        ) as held,
    ):
        yield held


@pytest.fixture
async def stack(system: BackgroundResource[Stack]) -> AsyncIterator[Stack]:
    """The shared system to a tenant of the test's own."""
    with system.in_use() as shared:
        async with aiohttp.ClientSession() as http:
            yield replace(shared.apart(), http=http)


@pytest.fixture
async def alone(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    """All four services on a database and a bus of the test's own."""
    async with running_stack(database, nats_url, model_home()) as made:
        yield made
