"""A BERT encoder in numpy, written out over one text, that graphs are compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


class BertReference:
    """The forward pass of weights under BERT's names."""

    def __init__(self, weights: Mapping[str, Array], layers: int, heads: int) -> None:
        self.weights, self.layers, self.heads = weights, layers, heads

    def encode(self, ids: Sequence[int]) -> Array:
        """The last hidden states, (tokens, width)."""
        x = self.weights["bert.embeddings.word_embeddings.weight"][list(ids)]
        x = x + self.weights["bert.embeddings.position_embeddings.weight"][: len(ids)]
        x = x + self.weights["bert.embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x, "bert.embeddings")
        for layer in range(self.layers):
            x = self._layer(x, f"bert.encoder.layer.{layer}")
        return x

    def _layer(self, x: Array, name: str) -> Array:
        width = x.shape[1]
        q, k, v = (
            self.linear(x, f"{name}.attention.self.{part}")
            .reshape(-1, self.heads, width // self.heads)
            .transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(width // self.heads))
        mixed = scores / scores.sum(-1, keepdims=True) @ v
        attended = mixed.transpose(1, 0, 2).reshape(len(x), width)
        x = self.norm(
            self.linear(attended, f"{name}.attention.output.dense") + x, f"{name}.attention.output"
        )
        wide = gelu(self.linear(x, f"{name}.intermediate.dense"))
        return self.norm(self.linear(wide, f"{name}.output.dense") + x, f"{name}.output")

    def linear(self, x: Array, name: str) -> Array:
        out: Array = x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return out

    def norm(self, x: Array, name: str) -> Array:
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        gamma, beta = (self.weights[f"{name}.LayerNorm.{part}"] for part in ("gamma", "beta"))
        out: Array = scaled * gamma + beta
        return out


def gelu(x: Array) -> Array:
    erf = np.vectorize(math.erf, otypes=[np.float32])
    out: Array = x * 0.5 * (1 + erf(x / np.sqrt(2)))
    return out
