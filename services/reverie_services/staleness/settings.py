"""Settings of the staleness service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reverie.domain.core.confidence import HALF_LIVES
from reverie.domain.core.kinds import Kind


@dataclass(frozen=True)
class StalenessSettings:
    """How often it looks for changes whose event was lost, and how old those are, in seconds;
    half-lives of confidence in days; how many bytes a change may hold."""

    git_limit: int = 25 * 1024 * 1024
    catch_up_interval: float = 15.0
    sweep_age: float = 30.0
    half_lives: Mapping[Kind, float] = field(default_factory=lambda: HALF_LIVES)
