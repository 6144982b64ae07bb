"""Settings of the dream service, derived from the process settings."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from reverie.domain.core.confidence import DEFAULT_DECAY, DecayPolicy
from reverie.domain.extraction.dream_log import DEFAULT_THRESHOLDS, DreamThresholds
from reverie.runtime.settings.field_types import ReviewMode
from reverie.runtime.settings.settings import Settings


@dataclass(frozen=True)
class DreamSettings:
    """The settings of dreams, with times in seconds.

    `turn_page_size` turns are read at once; the first `opening_turns` show the session's topic.
    """

    worker: str
    lease_seconds: float
    turn_page_size: int = 200
    opening_turns: int = 200
    max_attempts: int = 3
    retry_pause: float = 2.0
    poll_interval: float = 3.0
    max_summary_tokens: int = 800
    limits: DreamThresholds = DEFAULT_THRESHOLDS
    decay: DecayPolicy = DEFAULT_DECAY
    maintenance_interval: float = 21_600.0
    maintenance_step_timeout: float = 20.0
    reflection_enabled: bool = False
    review_mode: ReviewMode = "off"


def build_dream_settings(settings: Settings) -> DreamSettings:
    """The part of the settings that dream reads; a worker is named by host and process."""
    return DreamSettings(
        worker=f"{socket.gethostname()}/{os.getpid()}",
        lease_seconds=settings.worker_lease,
        decay=settings.decay_policy,
        maintenance_interval=settings.maintenance_interval * 60,
        reflection_enabled=settings.reflection_enabled,
        review_mode=settings.review_mode,
    )
