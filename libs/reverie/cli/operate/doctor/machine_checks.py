"""Doctor's checks of this machine."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from reverie.cli.app.output import abbreviate_home
from reverie.cli.operate.doctor.findings import Finding, error, ok, warning
from reverie.embedded.home import Home
from reverie.embedded.lock import is_home_locked
from reverie.runtime.process.system_resources import is_optimized_python
from reverie.runtime.settings.loading import find_unknown_variables
from reverie.runtime.settings.settings import Settings

MIN_PYTHON = (3, 11)
LOW_DISK_BYTES = 2 * 1024**3
MIN_DISK_BYTES = 300 * 1024**2
"""With fewer free bytes there is a warning, and an error."""

Check = Callable[[Settings, Home | None], Iterable[Finding]]


def check_python(_: Settings, __: Home | None) -> Iterable[Finding]:
    """The interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < MIN_PYTHON:
        yield error(f"Python {version} is too old", "Use Python 3.11 or later.")
    elif not is_optimized_python():
        remedy = "Use your system's Python, or build it with --enable-optimizations."
        yield warning(f"Python {version} was built without optimizations and is slow", remedy)
    else:
        yield ok(f"Python {version}")


def check_variables(_: Settings, __: Home | None) -> Iterable[Finding]:
    """Environment variables with Reverie's prefix that are no settings."""
    for name, suggestion in find_unknown_variables().items():
        remedy = f"Did you mean {suggestion}?" if suggestion else "Remove it."
        yield warning(f"the environment sets {name}, which is not a setting", remedy)


def check_home_folder(settings: Settings, home: Home | None) -> Iterable[Finding]:
    """The home folder, and the file modes of its secrets."""
    display_path = abbreviate_home(settings.home)
    if home is None:
        if os.access(_nearest_existing(settings.home), os.W_OK):
            yield ok(f"{display_path} will be created by the first `reverie up`")
        else:
            yield error(f"{display_path} cannot be created", "Set REVERIE_HOME to another folder.")
        return
    if not os.access(home.root, os.W_OK) or not os.access(home.secrets, os.R_OK | os.X_OK):
        owner = home.root.owner()
        remedy = f"Run as {owner}, or set REVERIE_HOME to another folder."
        yield error(f"{display_path} belongs to {owner}", remedy)
        return
    keys = (home.root / "tls").glob("*key.pem")
    for path in (home.secrets, *home.secrets.iterdir(), *keys):
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            remedy = f"Run `chmod go= {abbreviate_home(path)}`."
            yield error(f"other users can read {abbreviate_home(path)}", remedy)
    yield ok(f"data in {display_path}")


def check_disk(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """Free space for data."""
    free = shutil.disk_usage(_nearest_existing(settings.home)).free
    message = f"{free / 1e9:.1f} GB free for {abbreviate_home(settings.home)}"
    remedy = "Free some space, or set REVERIE_HOME to a larger disk."
    if free < MIN_DISK_BYTES:
        yield error(message, remedy)
    elif free < LOW_DISK_BYTES:
        yield warning(message, remedy)
    else:
        yield ok(message)


def check_postgres_binaries(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The embedded Postgres, unless a database URL is set."""
    if settings.database_url is None:
        from reverie.embedded.servers.binaries import find_postgres_bin

        binary = find_postgres_bin(settings.postgres_bin) / "postgres"
        yield _check_binary(binary, "REVERIE_POSTGRES_BIN")


def check_nats_binary(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The embedded NATS, unless a NATS URL is set."""
    if settings.nats_url is None:
        from reverie.embedded.servers.binaries import find_nats_server

        yield _check_binary(find_nats_server(settings.nats_bin), "REVERIE_NATS_BIN")


def _check_binary(binary: Path, setting: str) -> Finding:
    try:
        result = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as problem:
        reason = str(problem)
    else:
        if not result.returncode:
            return ok(result.stdout.strip())
        reason = result.stderr.strip() or f"exit code {result.returncode}"
    return error(f"{binary} does not run ({reason})", f"Choose another one with {setting}.")


def check_user(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """Checks the user that would run Postgres; `choose_account` raises if there is none."""
    if settings.database_url is not None or os.geteuid() != 0:
        return
    from reverie.embedded.privileges import choose_account

    account = choose_account(_nearest_existing(settings.home.resolve()) / "postgres")
    detail = ", with a capability to enter private folders" if account.passes_closed_folders else ""
    yield ok(f"Postgres runs as user {account.uid}{detail}")


def _nearest_existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def check_ports(settings: Settings, home: Home | None) -> Iterable[Finding]:
    """The ports that `reverie up` would use; checked only while it does not run."""
    if home is not None and is_home_locked(home):
        return
    from reverie.embedded.ports import is_free
    from reverie.embedded.probe import fetch_instance
    from reverie.embedded.reporting import SERVICES
    from reverie.embedded.servers import nats, postgres
    from reverie.runtime.settings.settings import base_url

    port_hosts = {f"{name}_port": settings.host for name in SERVICES}
    orphans: list[int] = []
    for name, server_type, url in (
        ("Postgres", postgres, settings.database_url),
        ("NATS", nats, settings.nats_url),
    ):
        if url is not None:
            continue
        port_hosts[f"{name.lower()}_port"] = "127.0.0.1"
        # The supervisor of such a server was killed.
        if home is not None and (server := server_type.find(home)) is not None:
            orphans.append(server.port)
            place = abbreviate_home(settings.home)
            message = f"{name} of {place} runs without a supervisor, on port {server.port}"
            yield warning(message, "`reverie up` uses it, and `reverie down` stops it then.")
    is_external = settings.database_url is not None
    for name, host in port_hosts.items():
        port = int(getattr(settings, name))
        if port and port not in orphans and not is_free(port, host):
            address = base_url(host, port, settings.tls_cert is not None)
            if is_external and fetch_instance(address):
                continue  # A service that was started by itself.
            remedy = f"`reverie up` takes another; to choose it, set REVERIE_{name.upper()}."
            yield warning(f"port {port} ({name}) is taken", remedy)


def check_model(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The embedding model; the hash of a model that Reverie distributes is verified."""
    from reverie.inference.model_resolver import ModelState, is_external_model, verify_model

    name, folder, url = (
        settings.embedding_model,
        settings.embedding_model_dir,
        settings.embedding_url,
    )
    if not settings.embeddings_enabled:
        yield ok("embeddings are off: no model is needed")
        return
    if name in settings.embedding_profiles:
        url = settings.embedding_profiles[name].url
    if is_external_model(name, settings.home, folder, url):
        location = url or folder or settings.home / "models"
        yield ok(f"model {name} is at {location}, its hash is not checked")
        return
    status, remedy = verify_model(name, settings.home, folder), "Run `reverie models pull`."
    if status.state is ModelState.READY:
        yield ok(f"model {status.name}, {status.size / 1e6:.0f} MB, has the right hash")
    elif status.state is ModelState.MISSING:
        yield warning(f"model {status.name} is not present", remedy)
    else:
        yield error(f"model {status.name}: {status.reason}", remedy)


def check_language_model(settings: Settings, _: Home | None) -> Iterable[Finding]:
    """The endpoint of the language model, if one is set."""
    from reverie.inference.llm_endpoint import build_language_endpoint, find_endpoint_problem

    endpoint = build_language_endpoint(settings)
    if endpoint is None:
        return
    message = f"language model {endpoint.model} at {endpoint.url}"
    if problem := find_endpoint_problem(endpoint):
        remedy = "Check REVERIE_LLM_URL and REVERIE_LLM_KEY; until then dreams use rules."
        yield error(f"{message} {problem}", remedy)
    else:
        yield ok(f"{message} answers")


def check_codex_hooks(_: Settings, __: Home | None) -> Iterable[Finding]:
    """Whether Codex runs the hooks that `reverie setup codex` wrote, here and for the user."""
    from reverie.agent.git.project_detection import detect_project
    from reverie.agent.setup.codex_trust import HOW_TO_TRUST, find_untrusted_hooks

    root = Path(detect_project(str(Path.cwd()), None, os.environ).root)
    if events := find_untrusted_hooks(Path.home(), root, os.environ):
        names = ", ".join(dict.fromkeys(events))
        remedy = f"Until then it gives and hands over nothing: {HOW_TO_TRUST}."
        yield warning(
            f"Codex does not run its hooks, because they are not trusted: {names}", remedy
        )


CHECKS = (
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
    check_codex_hooks,
)
