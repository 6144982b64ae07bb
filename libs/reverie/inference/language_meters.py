"""What is asked of language models, counted for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from reverie.inference.asking import Spent


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

    def asked(self, task: str, outcome: str, spent: Spent) -> None:
        """Counts one call and what it cost."""
        self._calls.labels(task, outcome).inc()
        self._tokens.labels(task, "sent").inc(spent.sent)
        self._tokens.labels(task, "received").inc(spent.received)
