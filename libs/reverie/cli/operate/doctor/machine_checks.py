"""Doctor's checks of this machine, and the list of all checks in order."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from reverie.cli.app.output import abbreviate_home
from reverie.cli.operate.doctor.service_checks import (
    Finding,
    check_backlog,
    check_bus,
    check_database,
    check_services,
)
from reverie.domain.core.errors import ReverieError
from reverie.embedded.home import Home, existing_home
from reverie.embedded.lock import is_home_locked
from reverie.runtime.process.system_resources import is_optimized_python
from reverie.runtime.settings.loading import find_unknown_variables
from reverie.runtime.settings.settings import Settings

MIN_PYTHON = (3, 11)
LOW_DISK_BYTES = 2 * 1024**3
MIN_DISK_BYTES = 300 * 1024**2
"""Bytes free below which there is a warning, and an error."""


Check = Callable[[Settings, Home | None], Iterable[Finding]]


def run_checks(settings: Settings) -> list[Finding]:
    """Everything, in the order in which things depend on each other."""
    home = existing_home(settings.home)
    checks: list[Check] = [
        check_python,
        check_variables,
        check_home_folder,
        check_disk,
        check_postgres_binaries,
        check_nats_binary,
        check_user,
        check_ports,
        check_model,
        check_language_model,
        check_database,
        check_bus,
        check_services,
        check_backlog,
    ]
    with ThreadPoolExecutor() as pool:
        results = pool.map(lambda check: _run_check(check, settings, home), checks)
        return [finding for findings in results for finding in findings]


def _run_check(check: Check, settings: Settings, home: Home | None) -> list[Finding]:
    try:
        return list(check(settings, home))
    except ReverieError as error:
        return [Finding("error", str(error))]


def check_python(_: Settings, __: Home | None) -> Iterable[Finding]:
    """The interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < MIN_PYTHON:
        yield Finding("error", f"Python {version} is too old", "Use Python 3.11 or later.")
    elif not is_optimized_python():
        message = f"Python {version} was built without optimisations: all takes longer"
        yield Finding(
            "warning", message, "Take your system's, or build it with --enable-optimizations."
        )
    else:
        yield Finding("ok", f"Python {version}")


def check_variables(_: Settings, __: Home | None) -> Iterable[Finding]:
    """Environment variables that look like settings and are none."""
    for name, suggestion in find_unknown_variables().items():
        hint = f"Did you mean {suggestion}?" if suggestion else "Remove it."
        yield Finding("warning", f"the environment sets {name}, which is not a setting", hint)


def check_home_folder(settings: Settings, home: Home | None) -> Iterable[Finding]:
    """The home folder and the modes of what is secret in it."""
    display_path = abbreviate_home(settings.home)
    if home is None:
        parent = next(path for path in (settings.home, *settings.home.parents) if path.exists())
        if os.access(parent, os.W_OK):
            yield Finding("ok", f"{display_path} will be created by the first `reverie up`")
        else:
            yield Finding(
                "error", f"{display_path} cannot be made", "Set REVERIE_HOME to another folder."
            )
        return
    if not os.access(home.root, os.W_OK) or not os.access(home.secrets, os.R_OK | os.X_OK):
        owner = home.root.owner()
        yield Finding(
            "error", f"{display_path} belongs to {owner}", f"Run as {owner}, or set another."
        )
        return
    yield from _check_modes(home)
    yield Finding("ok", f"data in {display_path}")


def _check_modes(home: Home) -> Iterable[Finding]:
    keys = (home.root / "tls").glob("*key.pem")
    for path in (home.secrets, *home.secrets.iterdir(), *keys):
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            message = f"other users can read {abbreviate_home(path)}"
            yield Finding("error", message, f"chmod go= {abbreviate_home(path)}")


def check_disk(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """Room for data."""
    parent = next(path for path in (settings.home, *settings.home.parents) if path.exists())
    free = shutil.disk_usage(parent).free
    message = f"{free / 1e9:.1f} GB free for {abbreviate_home(settings.home)}"
    if free < MIN_DISK_BYTES:
        yield Finding("error", message, "Free some space, or set REVERIE_HOME to a larger disk.")
    else:
        level: Literal["ok", "warning"] = "warning" if free < LOW_DISK_BYTES else "ok"
        yield Finding(level, message, "There is little space left." if level == "warning" else "")


def check_postgres_binaries(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The Postgres to embed, where none is given by URL."""
    if settings.database_url is None:
        from reverie.embedded.binaries import find_postgres_bin

        yield _check_binary(
            find_postgres_bin(settings.postgres_bin) / "postgres", "REVERIE_POSTGRES_BIN"
        )


def check_nats_binary(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The NATS to embed, where none is given by URL."""
    if settings.nats_url is None:
        from reverie.embedded.binaries import find_nats_server

        yield _check_binary(find_nats_server(settings.nats_bin), "REVERIE_NATS_BIN")


def _check_binary(binary: Path, setting: str) -> Finding:
    try:
        result = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(
            "error", f"{binary} does not run ({error})", f"Set another one with {setting}."
        )
    if result.returncode:
        reason = result.stderr.strip() or f"exit code {result.returncode}"
        return Finding(
            "error", f"{binary} does not run ({reason})", f"Set another one with {setting}."
        )
    return Finding("ok", result.stdout.strip())


def check_user(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """As whom Postgres would run; `choose_account` raises where it cannot."""
    if settings.database_url is not None or os.geteuid() != 0:
        return
    from reverie.embedded.privileges import choose_account

    account = choose_account(_nearest_existing(settings.home) / "postgres")
    detail = ", with a capability to pass closed folders" if account.passes_closed_folders else ""
    yield Finding("ok", f"Postgres runs as user {account.uid}{detail}")


def _nearest_existing(folder: Path) -> Path:
    return next(path for path in (folder.resolve(), *folder.resolve().parents) if path.exists())


def check_ports(settings: Settings, home: Home | None) -> Iterable[Finding]:
    """Ports that `reverie up` would like; looked at while it does not run."""
    if home is not None and is_home_locked(home):
        return
    from reverie.embedded.ports import is_free
    from reverie.embedded.reporting import SERVICES

    own_ports = _orphaned_servers(settings, home)
    for name, port in own_ports.items():
        message = f"{name} of {abbreviate_home(settings.home)} runs by itself, on port {port}"
        yield Finding(
            "warning", message, "`reverie up` takes it over, and `reverie down` then ends it."
        )

    port_hosts = {f"{name}_port": settings.host for name in SERVICES}
    port_hosts |= {"postgres_port": "127.0.0.1"} if settings.database_url is None else {}
    port_hosts |= {"nats_port": "127.0.0.1"} if settings.nats_url is None else {}
    for name, host in port_hosts.items():
        port = int(getattr(settings, name))
        if port and port not in own_ports.values() and not is_free(port, host):
            hint = f"`reverie up` takes another; to choose it, set REVERIE_{name.upper()}."
            yield Finding("warning", f"port {port} ({name}) is taken", hint)


def _orphaned_servers(settings: Settings, home: Home | None) -> dict[str, int]:
    """The ports of embedded servers whose supervisor was killed."""
    if home is None:
        return {}
    from reverie.embedded import nats, postgres

    servers = {
        "Postgres": postgres.find(home) if settings.database_url is None else None,
        "NATS": nats.find(home) if settings.nats_url is None else None,
    }
    return {name: server.port for name, server in servers.items() if server is not None}


def check_model(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The embedding model, hashed where it is one of Reverie's."""
    from reverie.inference.model_resolver import ModelState, is_external_model, verify_model

    if is_external_model(
        settings.embedding_model,
        settings.home,
        settings.embedding_model_dir,
        settings.embedding_url,
    ):
        location = settings.embedding_url or (
            settings.embedding_model_dir or settings.home / "models"
        )
        yield Finding(
            "ok", f"model {settings.embedding_model} is at {location}, its hash is not checked"
        )
        return
    status = verify_model(settings.embedding_model, settings.home, settings.embedding_model_dir)
    if status.state is ModelState.READY:
        yield Finding("ok", f"model {status.name}, {status.size / 1e6:.0f} MB, has the right hash")
    elif status.state is ModelState.MISSING:
        yield Finding(
            "warning", f"model {status.name} is not present", "Run `reverie models pull`."
        )
    else:
        yield Finding(
            "error", f"model {status.name}: {status.reason}", "Run `reverie models pull`."
        )


def check_language_model(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The language model's endpoint, where one is set."""
    from reverie.inference.llm_endpoint import build_language_endpoint, find_endpoint_problem

    endpoint = build_language_endpoint(settings)
    if endpoint is None:
        return
    message = f"language model {endpoint.model} at {endpoint.url}"
    if problem := find_endpoint_problem(endpoint):
        remedy = "Look at REVERIE_LLM_URL and REVERIE_LLM_KEY; until then dreams go by rules."
        yield Finding("error", f"{message} {problem}", remedy)
    else:
        yield Finding("ok", f"{message} answers")
