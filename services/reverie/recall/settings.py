"""What recall needs of the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reverie.domain.active_set import Budgets
from reverie.domain.confidence import HalfLives, half_lives
from reverie.domain.ranking import Fusion
from reverie.runtime.settings import Settings


@dataclass(frozen=True)
class RecallSettings:
    """Times in seconds; `candidates` is how many each arm may bring.

    `seconds`: what a recall may take; `parallel` of them are under way at once, `queue` wait.
    `exports`: how many are sent at once.
    """

    ingest_url: str
    dream_url: str
    staleness_url: str
    content_limit: int
    import_limit: int
    git_limit: int
    transfer_timeout: float
    half_lives: HalfLives
    fusion: Fusion
    arm_weights: Mapping[str, float]
    sparse_weight: float
    diversity: float
    rerank_seconds: float
    rephrase_seconds: float
    active_set: Budgets
    candidates: int = 100
    seconds: float = 6.0
    arm_seconds: float = 3.0
    parallel: int = 8
    queue: int = 64
    traces_kept: int = 2000
    hop_seeds: int = 20
    hop_fan_out: int = 8
    exports: int = 4


def recall_settings(settings: Settings) -> RecallSettings:
    """The part of the settings that recall reads."""
    return RecallSettings(
        ingest_url=settings.url_of("ingest"),
        dream_url=settings.url_of("dream"),
        staleness_url=settings.url_of("staleness"),
        content_limit=settings.content_limit,
        import_limit=settings.import_limit,
        git_limit=settings.git_limit,
        transfer_timeout=settings.transfer_timeout,
        half_lives=half_lives(settings.half_life_days),
        fusion=settings.recall_fusion,
        arm_weights={
            "words": settings.recall_words_weight,
            "meaning": settings.recall_meaning_weight,
        },
        sparse_weight=settings.recall_sparse_weight,
        diversity=settings.recall_diversity,
        active_set=Budgets(
            settings.preflow_resident_tokens,
            settings.preflow_recent_tokens,
            settings.preflow_on_demand_tokens,
        ),
        seconds=settings.recall_seconds,
        arm_seconds=settings.recall_seconds / 2,
        parallel=settings.recall_parallel,
        queue=settings.recall_queue,
        traces_kept=settings.trace_limit if settings.trace_hours else 0,
        exports=min(settings.export_parallel, max(settings.pool_max // 2, 1)),
        rerank_seconds=settings.rerank_seconds,
        rephrase_seconds=settings.rephrase_seconds,
    )
