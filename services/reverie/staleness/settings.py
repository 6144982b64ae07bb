"""How staleness works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StalenessSettings:
    """How often it looks for changes whose event was lost, and how old those are, in seconds."""

    sweep_seconds: float = 15.0
    sweep_age: float = 30.0
