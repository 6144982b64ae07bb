"""What staleness needs of the settings."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.runtime.settings import Settings


@dataclass(frozen=True)
class StalenessSettings:
    """Times in seconds."""

    outbox_grace: float
    sweep_seconds: float = 15.0
    sweep_age: float = 30.0


def staleness_settings(settings: Settings) -> StalenessSettings:
    """The part of the settings that staleness reads."""
    return StalenessSettings(outbox_grace=settings.outbox_grace)
