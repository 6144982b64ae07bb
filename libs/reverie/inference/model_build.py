"""Has a model's graph built from its weights, once, and verifies the result by its hash.

`model_resolver` calls it when it has fetched a model; `convert_model` is the program that builds.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from reverie.domain.core.errors import Unavailable
from reverie.inference.model_catalogue import ModelSpec

BUILD_VERSION = "5"
"""Raised when the conversion changes: models on disk are then converted again."""


_CONVERT = (sys.executable, "-P", "-m", "reverie.inference.convert_model")


def find_build_problem(model: ModelSpec, folder: Path) -> str | None:
    """Returns the problem of the converted files in a folder; None if they are complete."""
    if not model.built_files:
        return None
    try:
        stored = _stamp_path(model, folder).read_text("ascii").strip()
        actual = _compute_stamp(model, folder)
    except OSError:
        return f"{model.graph_file} is not made yet"
    return None if stored == actual else f"{' or '.join(model.built_files)} is not what was made"


def ensure_built(model: ModelSpec, folder: Path) -> None:
    """Converts the weights if not done yet, in a separate process (2 to 10 s).

    Raises `Unavailable` if that fails, as in a folder without write permission.
    """
    if find_build_problem(model, folder) is None:
        return
    subject = f"model {model.name} in {folder}"
    try:
        with TemporaryDirectory(prefix=".build-", dir=folder) as stage:
            conversion = subprocess.run(  # noqa: S603
                [*_CONVERT, str(folder / model.files[0].name), stage],
                capture_output=True,
                text=True,
                errors="replace",
            )
            if conversion.returncode != 0:
                last_line = next(reversed(conversion.stderr.splitlines()), "no message")
                raise Unavailable(subject, f"its graph cannot be made ({last_line})")
            for name in model.built_files:
                os.replace(Path(stage, name), folder / name)
        _stamp_path(model, folder).write_text(f"{_compute_stamp(model, folder)}\n", "ascii")
    except OSError as error:
        hint = f"its graph cannot be written there ({error.strerror or error})"
        raise Unavailable(subject, hint) from error


def _compute_stamp(model: ModelSpec, folder: Path) -> str:
    digest = hashlib.sha256()
    for name in model.built_files:
        digest.update((folder / name).read_bytes())
    return f"{BUILD_VERSION} {digest.hexdigest()}"


def _stamp_path(model: ModelSpec, folder: Path) -> Path:
    return folder / f"{model.graph_file}.sha256"
