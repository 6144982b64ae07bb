"""The learned-sparse model's ONNX graph equals the computation from its weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from reverie.inference.model_catalogue import SPLADE_TINY
from reverie.inference.model_resolver import ModelState, resolve_model, verify_model
from reverie.inference.sparse_encoder import OnnxSparseEncoder
from reverie.inference.token_counters import load_tokenizer
from reverie.testing.models import model_home

Array = NDArray[np.float32]
TEXTS = ["what caused the database outage?", "The relay sweeps the outbox, " * 30, "连接池", ""]


@pytest.fixture(scope="module")
def folder() -> Path:
    return model_home(SPLADE_TINY.name) / "models" / SPLADE_TINY.name


@pytest.fixture(scope="module")
def sparse(folder: Path) -> Iterator[OnnxSparseEncoder]:
    made = OnnxSparseEncoder(SPLADE_TINY, folder)
    yield made
    made.close()


class Forward:
    """The model's forward pass, written out over one text."""

    def __init__(self, folder: Path) -> None:
        self._w = load_file(folder / "model.safetensors")
        self._tokenizer = load_tokenizer(folder)
        self._tokenizer.enable_truncation(SPLADE_TINY.max_tokens)

    def weights(self, text: str) -> Array:
        words = self._w["bert.embeddings.word_embeddings.weight"]
        ids = self._tokenizer.encode(text).ids
        x = words[ids] + self._w["bert.embeddings.position_embeddings.weight"][: len(ids)]
        x = self._norm(
            x + self._w["bert.embeddings.token_type_embeddings.weight"][0], "bert.embeddings"
        )
        for layer in range(2):
            x = self._layer(x, f"bert.encoder.layer.{layer}")
        head = _gelu(self._linear(x, "cls.predictions.transform.dense"))
        logits = self._norm(head, "cls.predictions.transform") @ words.T
        best: Array = (logits + self._w["cls.predictions.bias"]).max(0)
        return np.log1p(np.maximum(best, 0))

    def _layer(self, x: Array, name: str) -> Array:
        q, k, v = (
            self._linear(x, f"{name}.attention.self.{part}").reshape(-1, 2, 64).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = np.exp(q @ k.transpose(0, 2, 1) / 8)
        seen = (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(x), 128)
        x = self._norm(
            self._linear(seen, f"{name}.attention.output.dense") + x, f"{name}.attention.output"
        )
        wide = _gelu(self._linear(x, f"{name}.intermediate.dense"))
        return self._norm(self._linear(wide, f"{name}.output.dense") + x, f"{name}.output")

    def _linear(self, x: Array, name: str) -> Array:
        out: Array = x @ self._w[f"{name}.weight"].T + self._w[f"{name}.bias"]
        return out

    def _norm(self, x: Array, name: str) -> Array:
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        out: Array = scaled * self._w[f"{name}.LayerNorm.gamma"] + self._w[f"{name}.LayerNorm.beta"]
        return out


def _gelu(x: Array) -> Array:
    erf = np.vectorize(math.erf, otypes=[np.float32])
    out: Array = x * 0.5 * (1 + erf(x / np.sqrt(2)))
    return out


async def test_the_graph_says_what_the_weights_say_padded_or_not(
    sparse: OnnxSparseEncoder, folder: Path
) -> None:
    forward = Forward(folder)
    together = await sparse.encode(TEXTS, limit=SPLADE_TINY.dims)
    for text, words in zip(TEXTS, together, strict=True):
        expected = forward.weights(text)
        got = np.zeros_like(expected)
        got[list(words)] = list(words.values())
        np.testing.assert_allclose(got, expected, atol=0.1)
        assert got @ expected > 0.999 * np.linalg.norm(got) * np.linalg.norm(expected)


async def test_of_many_words_the_heaviest_are_kept_and_none_of_nothing(
    sparse: OnnxSparseEncoder,
) -> None:
    [every] = await sparse.encode(TEXTS[:1], limit=SPLADE_TINY.dims)
    [few] = await sparse.encode(TEXTS[:1], limit=5)
    assert sorted(few.values()) == sorted(every.values())[-5:]
    assert all(weight > 0 for weight in every.values())
    assert await sparse.encode([]) == []


async def test_a_text_that_means_the_same_in_other_words_is_nearer(
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


def test_a_graph_that_was_damaged_is_told_and_made_anew_of_the_weights(
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
    assert (place / SPLADE_TINY.graph_file).read_bytes() == whole
    assert verify_model(SPLADE_TINY.name, tmp_path).state is ModelState.READY
