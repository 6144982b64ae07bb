"""Prometheus metrics of the embedding, sparse and reranking models of a process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

MetricT = TypeVar("MetricT", Counter, Gauge, Histogram)


class ModelMetrics:
    """Batches by size and duration, the calls that wait, and the texts that were known already."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def by_model(
            kind: type[MetricT], name: str, description: str, **options: Any
        ) -> Callable[[str], MetricT]:
            return cache(kind(name, description, ["model"], registry=registry, **options).labels)

        self._texts = by_model(
            Histogram,
            "reverie_model_batch_texts",
            "Texts per batch.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
        )
        self._tokens = by_model(
            Counter, "reverie_model_tokens", "Tokens that the model has read, without padding."
        )
        self._seconds = by_model(
            Histogram,
            "reverie_model_batch_seconds",
            "Seconds per batch.",
            buckets=_SECONDS_BUCKETS,
        )
        self._calls = by_model(
            Gauge,
            "reverie_model_calls",
            "Running calls of the model.",
        )
        self._limit = by_model(
            Gauge, "reverie_model_calls_limit", "Limit of concurrent calls of the model."
        )
        self._refused = by_model(
            Counter, "reverie_model_calls_refused", "Calls refused because the limit was reached."
        )
        self._cached = by_model(
            Counter, "reverie_model_texts_known", "Texts whose vector came from the cache."
        )
        self._loaded = by_model(
            Gauge,
            "reverie_model_loaded",
            "1 if the model is loaded, 0 if it is missing.",
        )

    def set_loaded(self, model: str, is_loaded: bool) -> None:
        """Records whether a requested model is loaded."""
        self._loaded(model).set(int(is_loaded))
        self._refused(model)

    def count_cached(self, model: str, texts: int) -> None:
        """Counts texts that were found in the cache."""
        self._cached(model).inc(texts)

    @contextmanager
    def track_call(self, model: str, limit: int) -> Iterator[None]:
        """One call that was let in; `limit`: how many may be."""
        self._limit(model).set(limit)
        self._calls(model).inc()
        try:
            yield
        finally:
            self._calls(model).dec()

    def count_refused(self, model: str) -> None:
        """Counts a call that was too much."""
        self._refused(model).inc()

    def count_tokens(self, model: str, tokens: int) -> None:
        """Counts tokens that the model has read."""
        self._tokens(model).inc(tokens)

    @contextmanager
    def track_batch(self, model: str, texts: int) -> Iterator[None]:
        """One batch, from its start to its end."""
        started = time.perf_counter()
        yield
        self._texts(model).observe(texts)
        self._seconds(model).observe(time.perf_counter() - started)


UNREGISTERED_METRICS = ModelMetrics(CollectorRegistry())
"""Metrics that no registry reads: for models outside a service."""
