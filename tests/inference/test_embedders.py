"""What every embedder guarantees, on the real model and on the fake."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from reverie.inference.embedder import CachedEmbedder, Embedder, OnnxEmbedder, load_embedder
from reverie.testing.models import FakeEmbedder, model_home

# int8 kernels round a little differently by the size of the batch.
SAME = 0.98


@pytest.fixture(scope="module")
def real() -> Iterator[OnnxEmbedder]:
    embedder = load_embedder(home=model_home())
    yield embedder
    embedder.close()


@pytest.fixture(params=["fake", "onnx", "cached fake"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    fake = "fake" in request.param
    inner: Embedder = FakeEmbedder() if fake else request.getfixturevalue("real")
    return CachedEmbedder(inner) if "cached" in request.param else inner


async def test_vectors_are_float32_of_length_one(embedder: Embedder) -> None:
    vectors = await embedder.embed(["rotate the signing keys", "", "   ", "密码学 🙂", "x"])
    assert vectors.dtype == np.float32
    assert vectors.shape == (5, embedder.dims)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


async def test_the_same_text_gets_the_same_vector(embedder: Embedder) -> None:
    first = await embedder.embed(["the outbox is swept by a relay"])
    again = await embedder.embed(["the outbox is swept by a relay"])
    assert np.array_equal(first, again)


async def test_similar_texts_are_nearer_than_different_ones(embedder: Embedder) -> None:
    query, like, unlike = await embedder.embed(
        [
            "how are login tokens rotated?",
            "login tokens are rotated every hour",
            "bananas ripen faster beside apples",
        ]
    )
    assert query @ like > query @ unlike + 0.1


async def test_no_texts_yield_no_rows(embedder: Embedder) -> None:
    vectors = await embedder.embed([])
    assert vectors.shape == (0, embedder.dims)
    assert vectors.dtype == np.float32


async def test_a_text_of_ten_thousand_characters_is_accepted(embedder: Embedder) -> None:
    vectors = await embedder.embed(["one more word " * 750, "y" * 10_000])
    assert vectors.shape == (2, embedder.dims)
    assert np.isfinite(vectors).all()


async def test_rows_keep_the_order_of_the_texts_in_any_batch(embedder: Embedder) -> None:
    texts = [f"note {n} about {'queues ' * (n * 7 % 23)}" for n in range(9)]
    together = await embedder.embed(texts)
    alone = np.concatenate([await embedder.embed([text]) for text in texts])
    assert (np.sum(together * alone, axis=1) > SAME).all()


async def test_a_repeated_text_yields_equal_rows(embedder: Embedder) -> None:
    vectors = await embedder.embed(["twice", "something else", "twice"])
    assert vectors[0] @ vectors[2] > SAME
