"""The learned-sparse model's ONNX graph equals the computation from its weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from safetensors.numpy import load_file

from reverie.inference.model_catalogue import SPLADE_TINY
from reverie.inference.model_resolver import ModelState, resolve_model, verify_model
from reverie.inference.sparse_encoder import OnnxSparseEncoder
from reverie.inference.token_counters import load_tokenizer
from reverie.testing.models import model_home
from tests.inference.bert_reference import Array, BertReference, gelu

TEXTS = ["what caused the database outage?", "The relay sweeps the outbox, " * 30, "连接池", ""]


@pytest.fixture(scope="module")
def folder() -> Path:
    return model_home(SPLADE_TINY.name) / "models" / SPLADE_TINY.name


@pytest.fixture(scope="module")
def sparse(folder: Path) -> Iterator[OnnxSparseEncoder]:
    made = OnnxSparseEncoder(SPLADE_TINY, folder)
    yield made
    made.close()


def expected_weights(folder: Path, text: str) -> Array:
    """The model's weights of the words, computed from its file over one text."""
    bert = BertReference(load_file(folder / "model.safetensors"), layers=2, heads=2)
    tokenizer = load_tokenizer(folder)
    tokenizer.enable_truncation(SPLADE_TINY.max_tokens)
    hidden = bert.encode(tokenizer.encode(text).ids)
    head = gelu(bert.linear(hidden, "cls.predictions.transform.dense"))
    words = bert.weights["bert.embeddings.word_embeddings.weight"]
    logits = bert.norm(head, "cls.predictions.transform") @ words.T
    best: Array = (logits + bert.weights["cls.predictions.bias"]).max(0)
    return np.log1p(np.maximum(best, 0))


async def test_the_graph_agrees_with_the_weights_with_and_without_padding(
    sparse: OnnxSparseEncoder, folder: Path
) -> None:
    together = await sparse.encode(TEXTS, limit=SPLADE_TINY.dims)
    for text, words in zip(TEXTS, together, strict=True):
        expected = expected_weights(folder, text)
        got = np.zeros_like(expected)
        got[list(words)] = list(words.values())
        np.testing.assert_allclose(got, expected, atol=0.1)
        assert got @ expected > 0.999 * np.linalg.norm(got) * np.linalg.norm(expected)


async def test_only_the_heaviest_words_are_kept_and_no_text_has_none(
    sparse: OnnxSparseEncoder,
) -> None:
    [every] = await sparse.encode(TEXTS[:1], limit=SPLADE_TINY.dims)
    [few] = await sparse.encode(TEXTS[:1], limit=5)
    assert sorted(few.values()) == sorted(every.values())[-5:]
    assert all(weight > 0 for weight in every.values())
    assert await sparse.encode([]) == []


async def test_a_paraphrase_is_nearer_than_another_text(
    sparse: OnnxSparseEncoder,
) -> None:
    query, like, unlike = await sparse.encode(
        [
            "why did the database go down?",
            "The outage of Postgres was caused by a full disk",
            "We rotate the logo every spring",
        ]
    )
    near, far = (sum(query.get(w, 0) * x for w, x in text.items()) for text in (like, unlike))
    assert near > 2 * far


def test_a_damaged_graph_is_reported_and_rebuilt_from_the_weights(
    folder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "models" / SPLADE_TINY.name
    copytree(folder, place)
    whole = (place / SPLADE_TINY.graph_file).read_bytes()
    (place / SPLADE_TINY.graph_file).write_bytes(whole[:-1])
    told = verify_model(SPLADE_TINY.name, tmp_path)
    assert told.state is ModelState.DAMAGED
    assert "graph.onnx" in told.reason
    assert resolve_model(SPLADE_TINY.name, tmp_path, download=False) == place
    assert verify_model(SPLADE_TINY.name, tmp_path).state is ModelState.READY
