"""The real embedding model for tests: fetched once into a folder outside any home."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from reverie.inference.catalogue import DEFAULT_MODEL
from reverie.inference.resolver import resolve


def model_home(name: str = DEFAULT_MODEL) -> Path:
    """A home folder whose `models/<name>` holds the verified model, fetched where it must be.

    `REVERIE_TEST_MODELS`, else `reverie-test-models` in the system's folder for temporary files.
    Hand `model_home() / "models"` to a service as its models folder. Raises `Unavailable` where
    no place gives the files.
    """
    default = Path(tempfile.gettempdir()) / "reverie-test-models"
    home = Path(os.environ.get("REVERIE_TEST_MODELS") or default)
    resolve(name, home)
    return home
