"""What the arms of a recall count: models no more than they have words for what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reverie.domain.question import READ_CHARS
from reverie.recall.parts import Parts

LEAST_KNOWN = 0.05
"""What meaning counts at least: a guess is better than nothing where words find nothing."""


@dataclass(frozen=True)
class Weights:
    """`arms`: of those that bring memories; `sparse`: of the one that judges them."""

    arms: Mapping[str, float]
    sparse: float


NO_WEIGHTS = Weights({}, 0.0)
"""Of a recall that has not asked its arms yet."""


def weights_of(parts: Parts, tenant: int, text: str) -> Weights:
    """The weights that are set, times the share of the question's tokens each model knows.

    Of the tenant's embedding model, as far as it was asked for by then.
    """
    settings, head = parts.settings, text[:READ_CHARS]
    counter = parts.model.counter_of(parts.models.lately(tenant).name)
    known = max(LEAST_KNOWN, counter.known(head))
    return Weights(
        {**settings.arm_weights, "meaning": settings.arm_weights["meaning"] * known},
        settings.sparse_weight * parts.model.sparse_counter.known(head),
    )
