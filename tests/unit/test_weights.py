"""What the arms of a recall count."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reverie.inference.slot import ModelSlot
from reverie.inference.tokens import EstimatingTokenCounter
from reverie.recall.settings import recall_settings
from reverie.recall.weights import LEAST_KNOWN, weights_of
from reverie.runtime.settings import Settings
from reverie.store.models import Pointer


class Blind(EstimatingTokenCounter):
    """Of a model that knows no word."""

    def known(self, text: str) -> float:
        return 0.0


def test_meaning_counts_what_the_model_of_the_tenant_reads_and_not_the_one_that_is_set(
    tmp_path: Path,
) -> None:
    slot = ModelSlot("blind", tmp_path, None, 1, False)
    slot.counter = Blind()
    slot._counters = {"blind": slot.counter, "reads": EstimatingTokenCounter()}
    settings = recall_settings(Settings(home=tmp_path))
    of = {1: Pointer("blind"), 2: Pointer("reads")}
    parts: Any = SimpleNamespace(
        settings=settings, model=slot, models=SimpleNamespace(lately=of.__getitem__)
    )
    whole = settings.arm_weights["meaning"]
    assert weights_of(parts, 1, "怎么避免客户隐私").arms["meaning"] == pytest.approx(
        whole * LEAST_KNOWN
    )
    assert weights_of(parts, 2, "怎么避免客户隐私").arms["meaning"] == whole
