"""Modules that are imported when they are first used, so that the client itself loads at once."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """Stands for a module until one of its names is asked for."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)
