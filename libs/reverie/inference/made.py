"""What is made once of the weights that were fetched: a graph, for some a tokenizer too.

What was made is stamped with its SHA-256, and made anew where the two differ.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from reverie.domain.errors import Unavailable
from reverie.inference import packed_graph, weights_graph
from reverie.inference.catalogue import Model

MADE_BY = "3"
"""Raised when what is made changes: that of before is then made anew."""


def graph_missing(model: Model, folder: Path) -> str | None:
    """What is wrong with what was made in a folder; None where it is whole."""
    if not model.makes:
        return None
    try:
        told = _stamp_of(model, folder).read_text("ascii").strip()
        there = _stamp((folder / name).read_bytes() for name in model.made)
    except OSError:
        return f"{model.graph} is not made yet"
    return None if told == there else f"{' or '.join(model.made)} is not what was made"


def make_graph(model: Model, folder: Path) -> None:
    """Makes it beside the weights where it is not there whole. Blocks, a second or a few.

    Raises `Unavailable` where the folder cannot be written to.
    """
    if graph_missing(model, folder) is None:
        return
    made = _made(model, folder / model.files[0].name)
    try:
        for name, data in zip(model.made, made, strict=True):
            _put(folder / name, data)
        _put(_stamp_of(model, folder), f"{_stamp(made)}\n".encode())
    except OSError as error:
        hint = f"its graph cannot be written there ({error.strerror or error})"
        raise Unavailable(f"model {model.name} in {folder}", hint) from error


def _made(model: Model, weights: Path) -> list[bytes]:
    if model.packed:
        return packed_graph.build(weights.read_bytes())
    from safetensors.numpy import load_file

    return [weights_graph.build(load_file(weights)).SerializeToString()]


def _stamp(made: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for data in made:
        digest.update(data)
    return f"{MADE_BY} {digest.hexdigest()}"


def _stamp_of(model: Model, folder: Path) -> Path:
    return folder / f"{model.graph}.sha256"


def _put(path: Path, data: bytes) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    fresh.write_bytes(data)
    os.replace(fresh, path)
