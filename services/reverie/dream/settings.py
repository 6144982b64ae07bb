"""What dream needs of the settings."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field

from reverie.domain.confidence import HALF_LIVES, HalfLives, half_lives
from reverie.domain.dreaming import DEFAULT, Limits
from reverie.runtime.setting_types import ReviewMode
from reverie.runtime.settings import Settings, dream_limits


@dataclass(frozen=True)
class DreamSettings:
    """Times in seconds; `batch` turns are read at once, the first `whole` tell what a session was
    about."""

    worker: str
    lease_seconds: float
    batch: int = 200
    whole: int = 200
    max_attempts: int = 3
    pause_seconds: float = 2.0
    look_seconds: float = 3.0
    summary_memories: int = 400
    summary_tokens: int = 800
    limits: Limits = DEFAULT
    half_lives: HalfLives = field(default_factory=lambda: HALF_LIVES)
    tend_seconds: float = 21_600.0
    tend_pass_seconds: float = 20.0
    reflect: bool = False
    review: ReviewMode = "off"
    archive_after_days: float = 7.0
    promote_sessions: int = 3


def dream_settings(settings: Settings) -> DreamSettings:
    """The part of the settings that dream reads; a worker is named by host and process."""
    return DreamSettings(
        worker=f"{socket.gethostname()}/{os.getpid()}",
        lease_seconds=settings.dream_lease_seconds,
        limits=dream_limits(settings),
        half_lives=half_lives(settings.half_life_days),
        tend_seconds=settings.tend_minutes * 60,
        tend_pass_seconds=settings.tend_pass_seconds,
        reflect=settings.reflect,
        review=settings.review,
        archive_after_days=settings.archive_after_days,
        promote_sessions=settings.promote_after_sessions,
    )
