"""Builds the ONNX graph of a BERT encoder, and of the SPLADE sparse model on top of it.

SPLADE (Formal et al. 2021) takes, for each word of the vocabulary, the maximum over the tokens of
log(1 + relu(logit)). The dimensions are read from the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import onnx

WeightArrays = Mapping[str, NDArray[np.float32]]

OPSET = 20
IR_VERSION = 9
_EPSILON = 1e-12
_MASKED_SCORE = -10_000.0
_MASKED_SUM = -(2.0**30)
"""Far below any sum of products."""
WORDS_PER_BLOCK = 2_048
"""Words whose sums are there at once."""
INPUT_NAMES = ("input_ids", "attention_mask")
_WORD_EMBEDDINGS = "bert.embeddings.word_embeddings.weight"


def build_splade_graph(weights: WeightArrays) -> onnx.ModelProto:
    """The graph: (texts, tokens) of `input_ids` and `attention_mask` to (texts, words)."""
    from onnx import TensorProto, checker, helper

    builder = GraphBuilder(weights)
    words = _add_word_weights(builder, add_encoder(builder))
    shape = ["texts", "tokens"]
    graph = helper.make_graph(
        builder.nodes,
        "sparse",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in INPUT_NAMES],
        [helper.make_tensor_value_info(words, TensorProto.FLOAT, ["texts", "words"])],
        builder.constants,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    checker.check_model(model)
    return model


class GraphBuilder:
    """A graph under way: each step adds a node and answers the name of what it gives."""

    def __init__(self, weights: WeightArrays, head_width: int = 64) -> None:
        self.weights, self.head_width = weights, head_width
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._constant_names: set[str] = set()

    def add_node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self.add_node_with_outputs(kind, 1, *inputs, **attributes)[0]

    def add_node_with_outputs(
        self, kind: str, output_count: int, *inputs: str, **attributes: Any
    ) -> list[str]:
        from onnx import helper

        names = [f"{kind.lower()}_{len(self.nodes)}" + "_" * index for index in range(output_count)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def add_constant(self, name: str, value: NDArray[Any]) -> str:
        from onnx import numpy_helper

        if name not in self._constant_names:
            self._constant_names.add(name)
            self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add_integers(self, *numbers: int) -> str:
        name = "int_" + "_".join(map(str, numbers))
        return self.add_constant(name, np.array(numbers, dtype=np.int64))

    def add_weight(self, name: str) -> str:
        return self.add_constant(name, self.weights[name])

    def add_word_embeddings(self, ids: str) -> str:
        return self.add_node("Gather", self.add_weight(_WORD_EMBEDDINGS), ids)

    def add_linear(self, x: str, name: str) -> str:
        transposed = self.add_constant(f"{name}.weight.T", self.weights[f"{name}.weight"].T)
        return self.add_node(
            "Add", self.add_node("MatMul", x, transposed), self.add_weight(f"{name}.bias")
        )

    def add_layer_norm(self, x: str, name: str) -> str:
        gamma, beta = (self.add_weight(f"{name}.LayerNorm.{part}") for part in ("gamma", "beta"))
        return self.add_node("LayerNormalization", x, gamma, beta, axis=-1, epsilon=_EPSILON)


def add_encoder(builder: GraphBuilder) -> str:
    """Adds a BERT encoder; the name of its last hidden states."""
    tokens = builder.add_node("Shape", "input_ids", start=1, end=2)
    # All tokens are of the first type, so its embedding is added to the positions at once.
    positions = (
        builder.weights["bert.embeddings.position_embeddings.weight"]
        + builder.weights["bert.embeddings.token_type_embeddings.weight"][0]
    )
    position_embeddings = builder.add_node(
        "Slice",
        builder.add_constant("places", positions),
        builder.add_integers(0),
        tokens,
        builder.add_integers(0),
    )
    hidden = builder.add_node("Add", builder.add_word_embeddings("input_ids"), position_embeddings)
    hidden = builder.add_layer_norm(hidden, "bert.embeddings")
    mask = _add_mask(builder, builder.add_integers(1, 2))
    for layer in range(_count_layers(builder.weights)):
        hidden = _add_layer(builder, f"bert.encoder.layer.{layer}", hidden, mask)
    return hidden


def _count_layers(weights: WeightArrays) -> int:
    return len([name for name in weights if name.endswith(".attention.self.query.bias")])


def _add_mask(builder: GraphBuilder, axes: str, masked: float = _MASKED_SCORE) -> str:
    """0 for a token, `masked` for padding, with axes put in to fit what it is added to."""
    is_token = builder.add_node("Cast", builder.add_node("Unsqueeze", "attention_mask", axes), to=1)
    is_padding = builder.add_node(
        "Sub", builder.add_constant("one", np.array(1, dtype=np.float32)), is_token
    )
    return builder.add_node(
        "Mul",
        is_padding,
        builder.add_constant(f"masked{masked}", np.array(masked, dtype=np.float32)),
    )


def _add_layer(builder: GraphBuilder, name: str, hidden: str, mask: str) -> str:
    attended = builder.add_linear(
        _add_attention(builder, f"{name}.attention.self", hidden, mask),
        f"{name}.attention.output.dense",
    )
    hidden = builder.add_layer_norm(
        builder.add_node("Add", attended, hidden), f"{name}.attention.output"
    )
    intermediate = builder.add_node(
        "Gelu", builder.add_linear(hidden, f"{name}.intermediate.dense")
    )
    return builder.add_layer_norm(
        builder.add_node("Add", builder.add_linear(intermediate, f"{name}.output.dense"), hidden),
        f"{name}.output",
    )


def _add_attention(builder: GraphBuilder, name: str, hidden: str, mask: str) -> str:
    width = len(builder.weights[f"{name}.query.bias"])
    heads = builder.add_integers(0, 0, width // builder.head_width, builder.head_width)

    def split(part: str, order: list[int]) -> str:
        projected = builder.add_linear(hidden, f"{name}.{part}")
        return builder.add_node(
            "Transpose", builder.add_node("Reshape", projected, heads), perm=order
        )

    query, value = split("query", [0, 2, 1, 3]), split("value", [0, 2, 1, 3])
    scores = builder.add_node("MatMul", query, split("key", [0, 2, 3, 1]))
    scale = builder.add_constant("scale", np.array(builder.head_width**-0.5, dtype=np.float32))
    scores = builder.add_node("Add", builder.add_node("Mul", scores, scale), mask)
    attended = builder.add_node("MatMul", builder.add_node("Softmax", scores, axis=-1), value)
    return builder.add_node(
        "Reshape",
        builder.add_node("Transpose", attended, perm=[0, 2, 1, 3]),
        builder.add_integers(0, 0, width),
    )


def _add_word_weights(builder: GraphBuilder, hidden: str) -> str:
    head = builder.add_node("Gelu", builder.add_linear(hidden, "cls.predictions.transform.dense"))
    head = builder.add_layer_norm(head, "cls.predictions.transform")
    logits = builder.add_node(
        "Add", _add_max_products(builder, head), builder.add_weight("cls.predictions.bias")
    )
    one_constant = builder.add_constant("one", np.array(1, dtype=np.float32))
    return builder.add_node(
        "Log", builder.add_node("Add", builder.add_node("Relu", logits), one_constant)
    )


def _add_max_products(builder: GraphBuilder, x: str) -> str:
    """The greatest product of each word's embedding and a token, in whole numbers of 8 bits.

    Each word has a scale of its own: weights keep a cosine of .9998 with those of whole precision.
    The greatest sum has the greatest logit and the greatest weight, so scales, biases and the
    logarithm are reckoned once a word. `WORDS_PER_BLOCK` words at a time: all at once would be
    megabytes for each few tokens, to be fetched and given back.
    """
    embeddings = builder.weights[_WORD_EMBEDDINGS]
    words, width = embeddings.shape
    scales = (np.abs(embeddings).max(axis=1) / 127).astype(np.float32)
    scales[scales == 0] = 1.0
    quantized = np.rint(embeddings / scales[:, None]).astype(np.int8)
    flat = builder.add_node("Reshape", x, builder.add_integers(-1, width))
    x, x_scale, x_zero = builder.add_node_with_outputs("DynamicQuantizeLinear", 3, flat)
    mask = builder.add_node("Cast", _add_mask(builder, builder.add_integers(2), _MASKED_SUM), to=6)
    maxima: list[str] = []
    for start in range(0, words, WORDS_PER_BLOCK):
        block = quantized[start : start + WORDS_PER_BLOCK]
        block_weights = builder.add_constant(f"{_WORD_EMBEDDINGS}.T8.{start}", block.T)
        sums = builder.add_node("MatMulInteger", x, block_weights, x_zero)
        shape = builder.add_node(
            "Concat",
            builder.add_node("Shape", "input_ids"),
            builder.add_integers(len(block)),
            axis=0,
        )
        masked = builder.add_node("Add", builder.add_node("Reshape", sums, shape), mask)
        maxima.append(builder.add_node("ReduceMax", masked, builder.add_integers(1), keepdims=0))
    scale = builder.add_node(
        "Mul", x_scale, builder.add_constant(f"{_WORD_EMBEDDINGS}.scales", scales)
    )
    return builder.add_node(
        "Mul", builder.add_node("Cast", builder.add_node("Concat", *maxima, axis=1), to=1), scale
    )
