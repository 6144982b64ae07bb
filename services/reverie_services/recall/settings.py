"""Settings of the recall service, derived from the process settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reverie.domain.context.active_set import LayerBudgets
from reverie.domain.core.confidence import HalfLives, parse_half_lives
from reverie.domain.retrieval.fusion import FusionMethod
from reverie.runtime.settings.settings import Settings

_MAX_TRACES = 2000
"""Traces that are kept of each tenant."""
_MAX_EXPORTS = 4


@dataclass(frozen=True)
class RecallSettings:
    """Times are in seconds. `timeout` bounds a whole recall."""

    ingest_url: str
    dream_url: str
    staleness_url: str
    content_limit: int
    import_limit: int
    git_limit: int
    transfer_timeout: float
    half_lives: HalfLives
    fusion: FusionMethod
    arm_weights: Mapping[str, float]
    sparse_weight: float
    mmr_lambda: float
    rerank_timeout: float
    query_expansion_timeout: float
    active_set_budgets: LayerBudgets
    candidates_per_arm: int = 100
    timeout: float = 6.0
    arm_timeout: float = 3.0
    max_concurrent_recalls: int = 8
    recall_queue_size: int = 64
    max_traces: int = _MAX_TRACES
    hop_seeds: int = 20
    hop_fan_out: int = 8
    max_concurrent_exports: int = _MAX_EXPORTS


def build_recall_settings(settings: Settings) -> RecallSettings:
    """The part of the settings that recall reads."""
    return RecallSettings(
        ingest_url=settings.url_of("ingest"),
        dream_url=settings.url_of("dream"),
        staleness_url=settings.url_of("staleness"),
        content_limit=settings.content_limit,
        import_limit=settings.import_limit,
        git_limit=settings.git_limit,
        transfer_timeout=settings.transfer_timeout,
        half_lives=parse_half_lives(settings.confidence_half_life_days),
        fusion=settings.recall_fusion,
        arm_weights={
            "words": settings.recall_lexical_weight,
            "meaning": settings.recall_vector_weight,
        },
        sparse_weight=settings.recall_sparse_weight,
        mmr_lambda=settings.recall_mmr_lambda,
        active_set_budgets=_split_preflow_tokens(settings.preflow_tokens),
        timeout=settings.recall_timeout,
        arm_timeout=settings.recall_timeout / 2,
        max_traces=_MAX_TRACES if settings.trace_retention_hours else 0,
        # An export keeps a connection, and recalls need some too.
        max_concurrent_exports=min(_MAX_EXPORTS, max(settings.pool_max // 2, 1)),
        rerank_timeout=settings.rerank_timeout,
        query_expansion_timeout=settings.query_expansion_timeout,
    )


def _split_preflow_tokens(tokens: int) -> LayerBudgets:
    resident, recent = tokens // 5, tokens * 4 // 15
    return LayerBudgets(resident, recent, tokens - resident - recent)
