"""What ingest needs of the settings."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.domain.confidence import HalfLives, half_lives
from reverie.domain.dreaming import Limits
from reverie.inference.catalogue import DEFAULT_MODEL
from reverie.runtime.settings import Settings, dream_limits


@dataclass(frozen=True)
class IngestSettings:
    """Limits in bytes or characters, times in seconds.

    `model_by_letters`: whether a tenant may be moved to a model that reads its memories.
    """

    content_limit: int
    turn_limit: int
    tool_turn_chars: int
    dream_limits: Limits
    outbox_grace: float
    import_limit: int
    half_lives: HalfLives
    event_watchers: int
    trace_seconds: float
    audit_seconds: float
    adjust_seconds: float
    sweep_seconds: float
    decision_seconds: float
    tend_seconds: float
    model_by_letters: bool
    chunk_tokens: int = 200
    chunk_overlap: int = 40
    relatives: int = 5
    sweep_age: float = 30.0
    delete_seconds: float = 15.0
    scrub_seconds: float = 1.0
    scrub_grace: float = 30.0


def ingest_settings(settings: Settings) -> IngestSettings:
    """The part of the settings that ingest reads."""
    return IngestSettings(
        content_limit=settings.content_limit,
        turn_limit=settings.turn_limit,
        tool_turn_chars=settings.tool_turn_chars,
        dream_limits=dream_limits(settings),
        outbox_grace=settings.outbox_grace,
        import_limit=settings.import_limit,
        half_lives=half_lives(settings.half_life_days),
        event_watchers=settings.event_watchers,
        trace_seconds=settings.trace_hours * 3600,
        audit_seconds=settings.audit_days * 86_400,
        adjust_seconds=settings.adjust_seconds,
        sweep_seconds=settings.clock_seconds,
        tend_seconds=settings.tend_minutes * 60,
        model_by_letters=settings.model_by_letters
        and settings.model_url is None
        and settings.model == DEFAULT_MODEL,
        decision_seconds=settings.dream_history_days * 86_400,
        delete_seconds=settings.request_timeout / 2,
        scrub_grace=settings.request_timeout,
    )
