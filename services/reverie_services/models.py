"""Builds what holds the models of a service process."""

from __future__ import annotations

from reverie.inference.embedding_endpoint import build_embedding_endpoint
from reverie.inference.model_manager import ModelManager, SparseMode
from reverie.inference.model_metrics import UNREGISTERED_METRICS, ModelMetrics
from reverie.runtime.settings.settings import Settings


def build_model_manager(
    settings: Settings,
    sparse_mode: SparseMode = "off",
    metrics: ModelMetrics = UNREGISTERED_METRICS,
) -> ModelManager:
    """The models that the settings name; none is loaded yet."""
    return ModelManager(
        settings.embedding_model,
        settings.home,
        settings.embedding_model_dir,
        settings.embedding_threads,
        settings.model_download,
        sparse_mode,
        build_embedding_endpoint(
            settings.embedding_url, settings.embedding_dims, settings.embedding_key
        ),
        metrics=metrics,
    )
