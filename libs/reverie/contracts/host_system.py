"""Names the operating system that this process runs on: the one place that asks."""

from __future__ import annotations

import sys


def is_linux() -> bool:
    """Whether this is Linux, where `/proc` and its neighbours are."""
    return host_system() == "linux"


def is_macos() -> bool:
    """Whether this is macOS."""
    return host_system() == "darwin"


def host_system() -> str:
    """The name of the system, as Python says it: `linux`, `darwin`, ..."""
    # A variable, so that a type checker does not take one system for the only one.
    name: str = sys.platform
    return name
