"""A model of one's own: a folder with `model.onnx` and `tokenizer.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from reverie.domain.errors import Misconfigured

Pooling = Literal["cls", "mean"]
OWN_GRAPH = "model.onnx"


class Profile(BaseModel):
    """What a folder says of its model, in `profile.json`; without one this holds."""

    pooling: Pooling = "mean"
    max_tokens: int = Field(512, ge=8, le=32_768)


def own_profile(folder: Path, setting: str) -> Profile:
    """What the folder says. Raises `Misconfigured` naming the setting where files are missing."""
    missing = [name for name in (OWN_GRAPH, "tokenizer.json") if not (folder / name).is_file()]
    if missing:
        raise Misconfigured(setting, f"{folder} has no {' and no '.join(missing)}")
    told = folder / "profile.json"
    try:
        return Profile.model_validate_json(told.read_bytes() if told.is_file() else b"{}")
    except (OSError, ValidationError) as error:
        raise Misconfigured(setting, f"{told} says no pooling (cls, mean) or max_tokens") from error
