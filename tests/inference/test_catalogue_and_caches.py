"""The model catalogue, token estimates and the embedding cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.core.errors import Misconfigured
from reverie.inference.embedder import CachedEmbedder, Vectors
from reverie.inference.model_catalogue import MODELS, get_model_spec
from reverie.inference.token_counters import EstimatingTokenCounter
from reverie.testing.models import FakeEmbedder


class CountingEmbedder(FakeEmbedder):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return await super().embed(texts)


def test_importing_inference_loads_no_model_runtime() -> None:
    code = (
        "import sys, reverie.inference.embedder, reverie.inference.token_counters, "
        "reverie.inference.model_resolver, reverie.testing.models; "
        "heavy = ('onnx', 'onnxruntime', 'tokenizers', 'huggingface_hub'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_model_is_refused_with_the_choices() -> None:
    with pytest.raises(Misconfigured, match=r"bge-small-en-v1\.5"):
        get_model_spec("bge-huge")


def test_every_known_model_pins_sha256_and_a_table_name_safe_in_sql() -> None:
    for model in MODELS.values():
        assert model.table.isidentifier()
        assert model.table.islower()
        assert all(len(file.sha256) == 64 and file.size > 0 for file in model.files)


@given(st.text(max_size=300), st.integers(min_value=0, max_value=60))
def test_an_estimated_truncation_is_a_prefix_within_the_limit(text: str, limit: int) -> None:
    counter = EstimatingTokenCounter()
    cut = counter.cut(text, limit)
    assert text.startswith(cut)
    assert counter.count(cut) <= limit
    if counter.count(text) <= limit:
        assert cut == text


async def test_the_cache_requests_each_text_once() -> None:
    inner = CountingEmbedder()
    cached = CachedEmbedder(inner)
    first = await cached.embed(["a", "b", "a"])
    second = await cached.embed(["b", "c"])
    assert inner.asked == ["a", "b", "c"]
    assert np.array_equal(first[1], second[0])


async def test_the_cache_evicts_the_least_recently_used() -> None:
    inner = CountingEmbedder()
    cached = CachedEmbedder(inner, size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await cached.embed([text])
    assert inner.asked == ["a", "b", "c", "b"]


async def test_changing_an_answer_does_not_change_the_cache() -> None:
    cached = CachedEmbedder(FakeEmbedder())
    first = await cached.embed(["a"])
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(await cached.embed(["a"]), kept)
