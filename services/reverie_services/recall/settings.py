"""Settings of the recall service, derived from the process settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reverie.domain.context.active_set import LayerBudgets
from reverie.domain.core.confidence import DecayPolicy
from reverie.domain.retrieval.fusion import FusionMethod
from reverie.domain.retrieval.relevance import DEFAULT_THRESHOLD
from reverie.runtime.settings.settings import Settings

_MAX_TRACES = 2000
"""Traces that are kept of each tenant."""
_MAX_EXPORTS = 4
DEFAULT_BUDGETS = LayerBudgets(resident=300, recent=400, on_demand=800)
"""Tokens of the context before a turn."""


@dataclass(frozen=True)
class RecallSettings:
    """Times are in seconds. `timeout` bounds a whole recall.

    `sparse_weight`: the share of the sparse arm in the score of what it finds. `mmr_lambda`: 1
    ranks by score alone, less removes more near-duplicates. `relevance_threshold`: hits with a
    lower relevance do not answer a question.
    """

    content_limit: int
    decay: DecayPolicy
    rerank_timeout: float
    query_expansion_timeout: float
    default_limit: int = 10
    fusion: FusionMethod = "weighted"
    arm_weights: Mapping[str, float] = field(
        default_factory=lambda: {"words": 0.45, "meaning": 0.55}
    )
    sparse_weight: float = 0.2
    mmr_lambda: float = 0.7
    relevance_threshold: float = DEFAULT_THRESHOLD
    active_set_budgets: LayerBudgets = DEFAULT_BUDGETS
    candidates_per_arm: int = 100
    timeout: float = 6.0
    arm_timeout: float = 3.0
    max_concurrent_recalls: int = 8
    recall_queue_size: int = 64
    max_traces: int = _MAX_TRACES
    hop_seeds: int = 20
    hop_fan_out: int = 8
    node_fan_out: int = 12
    max_concurrent_exports: int = _MAX_EXPORTS
    export_timeout: float = 3600.0


def build_recall_settings(settings: Settings) -> RecallSettings:
    """The part of the settings that recall reads."""
    return RecallSettings(
        content_limit=settings.content_limit,
        decay=settings.decay_policy,
        timeout=settings.recall_timeout,
        arm_timeout=settings.recall_timeout / 2,
        max_traces=_MAX_TRACES if settings.trace_retention_hours else 0,
        # An export keeps a connection, and recalls need some too.
        max_concurrent_exports=min(_MAX_EXPORTS, max(settings.pool_max // 2, 1)),
        export_timeout=settings.transfer_timeout,
        default_limit=settings.recall_limit,
        rerank_timeout=settings.rerank_timeout,
        relevance_threshold=settings.relevance_threshold,
        query_expansion_timeout=settings.query_expansion_timeout,
    )
