"""Settings of the ingest service, derived from the process settings."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.domain.core.confidence import DecayPolicy
from reverie.inference.model_catalogue import DEFAULT_MODEL
from reverie.runtime.settings.settings import Settings


@dataclass(frozen=True)
class IngestSettings:
    """Limits in bytes or characters, times in seconds.

    `auto_multilingual_model`: whether a tenant may be moved to a model that reads its memories.
    """

    body_limit: int
    content_limit: int
    turn_limit: int
    picture_limit: int
    tool_output_limit: int
    outbox_sweep_after: float
    import_limit: int
    decay: DecayPolicy
    max_event_watchers: int
    trace_retention: float
    audit_retention: float
    engine_retention: float
    forget_after: float
    scheduler_interval: float
    maintenance_interval: float
    auto_multilingual_model: bool
    sweep_age: float = 30.0


def build_ingest_settings(settings: Settings) -> IngestSettings:
    """The part of the settings that ingest reads."""
    return IngestSettings(
        body_limit=settings.body_limit,
        content_limit=settings.content_limit,
        turn_limit=settings.turn_limit,
        picture_limit=settings.picture_limit,
        tool_output_limit=settings.tool_output_limit,
        outbox_sweep_after=settings.outbox_sweep_after,
        import_limit=settings.import_limit,
        decay=settings.decay_policy,
        max_event_watchers=settings.max_event_watchers,
        trace_retention=settings.trace_retention_hours * 3600,
        audit_retention=settings.audit_retention_days * 86_400,
        engine_retention=settings.engine_retention_days * 86_400,
        forget_after=settings.forget_days * 86_400,
        scheduler_interval=settings.scheduler_interval,
        maintenance_interval=settings.maintenance_interval * 60,
        auto_multilingual_model=settings.auto_multilingual_model
        and settings.embeddings_enabled
        and settings.embedding_url is None
        and settings.embedding_model == DEFAULT_MODEL,
    )
