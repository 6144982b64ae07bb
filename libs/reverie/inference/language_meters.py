"""What is asked of language models, counted for Prometheus."""

from __future__ import annotations

from opentelemetry import trace
from prometheus_client import CollectorRegistry, Counter, Histogram

from reverie.inference.asking import Spent

_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120)


class LanguageMeters:
    """Counters of this process, by task (the name of the prompt)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "reverie_llm_calls",
            "Calls of language models, by task and whether they were answered.",
            ["task", "outcome"],
            registry=registry,
        )
        self._tokens = Counter(
            "reverie_llm_tokens",
            "Tokens of language models, by task and direction (sent, received).",
            ["task", "direction"],
            registry=registry,
        )

        self._seconds = Histogram(
            "reverie_llm_call_seconds",
            "Seconds that language models took to answer, by task and whether they did.",
            ["task", "outcome"],
            buckets=_SECONDS,
            registry=registry,
        )

    def asked(self, task: str, outcome: str, spent: Spent, seconds: float) -> None:
        """Counts one call, what it cost and how long it took."""
        self._seconds.labels(task, outcome).observe(seconds, _exemplar())
        self._calls.labels(task, outcome).inc()
        self._tokens.labels(task, "sent").inc(spent.sent)
        self._tokens.labels(task, "received").inc(spent.received)


def _exemplar() -> dict[str, str] | None:
    """The trace that a call is part of, where its spans are kept."""
    context = trace.get_current_span().get_span_context()
    sampled = context.is_valid and context.trace_flags.sampled
    return {"trace_id": format(context.trace_id, "032x")} if sampled else None
