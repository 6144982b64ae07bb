"""Builds a model's graph from its downloaded weights once, and checks it by a stored hash."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from reverie.domain.core.errors import Unavailable
from reverie.inference import bert_graph, packed_model
from reverie.inference.model_catalogue import ModelSpec

BUILD_VERSION = "3"
"""Raised when what is made changes: that of before is then made anew."""


def find_build_problem(model: ModelSpec, folder: Path) -> str | None:
    """What is wrong with what was made in a folder; None where it is whole."""
    if not model.built_graph:
        return None
    try:
        stored = _stamp_path(model, folder).read_text("ascii").strip()
        actual = _compute_stamp((folder / name).read_bytes() for name in model.built_files)
    except OSError:
        return f"{model.graph_file} is not made yet"
    return None if stored == actual else f"{' or '.join(model.built_files)} is not what was made"


def ensure_built(model: ModelSpec, folder: Path) -> None:
    """Makes it beside the weights where it is not there whole. Blocks, a second or a few.

    Raises `Unavailable` where the folder cannot be written to.
    """
    if find_build_problem(model, folder) is None:
        return
    outputs = _build_outputs(model, folder / model.files[0].name)
    try:
        for name, data in zip(model.built_files, outputs, strict=True):
            _write_atomically(folder / name, data)
        _write_atomically(_stamp_path(model, folder), f"{_compute_stamp(outputs)}\n".encode())
    except OSError as error:
        hint = f"its graph cannot be written there ({error.strerror or error})"
        raise Unavailable(f"model {model.name} in {folder}", hint) from error


def _build_outputs(model: ModelSpec, weights: Path) -> list[bytes]:
    if model.is_packed:
        return packed_model.build_packed_model(weights.read_bytes())
    from safetensors.numpy import load_file

    return [bert_graph.build_splade_graph(load_file(weights)).SerializeToString()]


def _compute_stamp(outputs: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for data in outputs:
        digest.update(data)
    return f"{BUILD_VERSION} {digest.hexdigest()}"


def _stamp_path(model: ModelSpec, folder: Path) -> Path:
    return folder / f"{model.graph_file}.sha256"


def _write_atomically(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_bytes(data)
    os.replace(temporary, path)
