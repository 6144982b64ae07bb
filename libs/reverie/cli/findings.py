"""What `reverie doctor` looks at on this machine."""

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

from reverie.cli.common import short_home
from reverie.cli.finding import Finding
from reverie.cli.findings_backlog import backlog
from reverie.cli.findings_servers import bus, database, services
from reverie.domain.errors import ReverieError
from reverie.embedded.home import Home, existing_home
from reverie.embedded.lock import is_held
from reverie.runtime.machine import is_python_fast
from reverie.runtime.setting_names import stray_variables
from reverie.runtime.settings import Settings

MIN_PYTHON = (3, 11)
LOW_DISK = 2 * 1024**3
NO_DISK = 300 * 1024**2
"""Bytes free below which there is a warning, and an error."""


Look = Callable[[Settings, Home | None], Iterable[Finding]]


def examine(settings: Settings) -> list[Finding]:
    """Everything, in the order in which things depend on each other."""
    home = existing_home(settings.home)
    looks: list[Look] = [
        python,
        variables,
        folder,
        disk,
        postgres_binaries,
        nats_binary,
        user,
        ports,
        model,
        language,
        database,
        bus,
        services,
        backlog,
    ]
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda look: _safely(look, settings, home), looks)
        return [finding for findings in found for finding in findings]


def _safely(look: Look, settings: Settings, home: Home | None) -> list[Finding]:
    try:
        return list(look(settings, home))
    except ReverieError as error:
        return [Finding("error", str(error))]


def python(_: Settings, __: Home | None) -> Iterable[Finding]:
    """The interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < MIN_PYTHON:
        yield Finding("error", f"Python {version} is too old", "Use Python 3.11 or later.")
    elif not is_python_fast():
        what = f"Python {version} was built without optimisations: all takes longer"
        yield Finding("note", what, "Take your system's, or build it with --enable-optimizations.")
    else:
        yield Finding("ok", f"Python {version}")


def variables(_: Settings, __: Home | None) -> Iterable[Finding]:
    """Environment variables that look like settings and are none."""
    for name, near in stray_variables().items():
        hint = f"Did you mean {near}?" if near else "Remove it."
        yield Finding("note", f"the environment sets {name}, which is no setting", hint)


def folder(settings: Settings, home: Home | None) -> Iterable[Finding]:
    """The home folder and the modes of what is secret in it."""
    shown = short_home(settings.home)
    if home is None:
        parent = next(p for p in (settings.home, *settings.home.parents) if p.exists())
        if os.access(parent, os.W_OK):
            yield Finding("ok", f"{shown} will be made by the first `reverie up`")
        else:
            yield Finding("error", f"{shown} cannot be made", "Set REVERIE_HOME to another folder.")
        return
    if not os.access(home.root, os.W_OK) or not os.access(home.secrets, os.R_OK | os.X_OK):
        owner = home.root.owner()
        yield Finding("error", f"{shown} belongs to {owner}", f"Run as {owner}, or set another.")
        return
    yield from _modes(home)
    yield Finding("ok", f"data in {shown}")


def _modes(home: Home) -> Iterable[Finding]:
    keys = (home.root / "tls").glob("*key.pem")
    for path in (home.secrets, *home.secrets.iterdir(), *keys):
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            what = f"other users can read {short_home(path)}"
            yield Finding("error", what, f"chmod go= {short_home(path)}")


def disk(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """Room for data."""
    parent = next(p for p in (settings.home, *settings.home.parents) if p.exists())
    free = shutil.disk_usage(parent).free
    what = f"{free / 1e9:.1f} GB free for {short_home(settings.home)}"
    if free < NO_DISK:
        yield Finding("error", what, "Make room, or set REVERIE_HOME to a larger disk.")
    else:
        level: Literal["ok", "note"] = "note" if free < LOW_DISK else "ok"
        yield Finding(level, what, "That is little." if level == "note" else "")


def postgres_binaries(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The Postgres to embed, where none is given by URL."""
    if settings.database_url is None:
        from reverie.embedded.binaries import postgres_bin

        yield _runs(postgres_bin(settings.postgres_bin) / "postgres", "REVERIE_POSTGRES_BIN")


def nats_binary(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The NATS to embed, where none is given by URL."""
    if settings.nats_url is None:
        from reverie.embedded.binaries import nats_server

        yield _runs(nats_server(settings.nats_bin), "REVERIE_NATS_BIN")


def _runs(binary: Path, setting: str) -> Finding:
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("error", f"{binary} does not run ({error})", f"Name another by {setting}.")
    if said.returncode:
        reason = said.stderr.strip() or f"exit code {said.returncode}"
        return Finding("error", f"{binary} does not run ({reason})", f"Name another by {setting}.")
    return Finding("ok", said.stdout.strip())


def user(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """As whom Postgres would run; `run_as` raises where it cannot."""
    if settings.database_url is not None or os.geteuid() != 0:
        return
    from reverie.embedded.privileges import run_as

    who = run_as(_nearest(settings.home) / "postgres")
    how = ", with a capability to pass closed folders" if who.passes_closed_folders else ""
    yield Finding("ok", f"Postgres runs as user {who.uid}{how}")


def _nearest(folder: Path) -> Path:
    return next(p for p in (folder.resolve(), *folder.resolve().parents) if p.exists())


def ports(settings: Settings, home: Home | None) -> Iterable[Finding]:
    """Ports that `reverie up` would like; looked at while it does not run."""
    if home is not None and is_held(home):
        return
    from reverie.embedded.addresses import SERVICES
    from reverie.embedded.ports import is_free

    own = _left_alone(settings, home)
    for name, port in own.items():
        what = f"{name} of {short_home(settings.home)} runs by itself, on port {port}"
        yield Finding("note", what, "`reverie up` takes it over, and `reverie down` then ends it.")

    wanted = {f"{name}_port": settings.host for name in SERVICES}
    wanted |= {"postgres_port": "127.0.0.1"} if settings.database_url is None else {}
    wanted |= {"nats_port": "127.0.0.1"} if settings.nats_url is None else {}
    for name, host in wanted.items():
        port = int(getattr(settings, name))
        if port and port not in own.values() and not is_free(port, host):
            hint = f"`reverie up` takes another; to choose it, set REVERIE_{name.upper()}."
            yield Finding("note", f"port {port} ({name}) is taken", hint)


def _left_alone(settings: Settings, home: Home | None) -> dict[str, int]:
    """The ports of embedded servers whose supervisor was killed."""
    if home is None:
        return {}
    from reverie.embedded import nats, postgres

    there = {
        "Postgres": postgres.find(home) if settings.database_url is None else None,
        "NATS": nats.find(home) if settings.nats_url is None else None,
    }
    return {name: server.port for name, server in there.items() if server is not None}


def model(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The embedding model, hashed where it is one of Reverie's."""
    from reverie.inference.resolver import State, is_elsewhere, verify

    if is_elsewhere(settings.model, settings.home, settings.model_dir, settings.model_url):
        where = settings.model_url or (settings.model_dir or settings.home / "models")
        yield Finding("ok", f"model {settings.model} is at {where}, and is not hashed")
        return
    found = verify(settings.model, settings.home, settings.model_dir)
    if found.state is State.READY:
        yield Finding("ok", f"model {found.name}, {found.size / 1e6:.0f} MB, hashes as it should")
    elif found.state is State.MISSING:
        yield Finding("note", f"model {found.name} is not here", "Run `reverie models pull`.")
    else:
        yield Finding("error", f"model {found.name}: {found.reason}", "Run `reverie models pull`.")


def language(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The language model's endpoint, where one is set."""
    from reverie.inference.asking import language_endpoint
    from reverie.inference.language_probe import trouble_of

    endpoint = language_endpoint(settings)
    if endpoint is None:
        return
    what = f"language model {endpoint.model} at {endpoint.url}"
    if trouble := trouble_of(endpoint):
        mend = "Look at REVERIE_LLM_URL and REVERIE_LLM_KEY; until then dreams go by rules."
        yield Finding("error", f"{what} {trouble}", mend)
    else:
        yield Finding("ok", f"{what} answers")
