"""The graph of a learned sparse model, made once of the weights that were fetched.

A BERT encoder, its masked-language head, and of each word of the vocabulary the weight
max over the tokens of log(1 + relu(logit)) (SPLADE, Formal et al. 2021). The shape is read off
the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import onnx

Weights = Mapping[str, NDArray[np.float32]]

OPSET = 20
IR_VERSION = 9
_EPSILON = 1e-12
_MASKED = -10_000.0
_NO_SUM = -(2.0**30)
"""Far below any sum of products."""
BLOCK = 2_048
"""Words whose sums are there at once."""
INPUTS = ("input_ids", "attention_mask")
_WORDS = "bert.embeddings.word_embeddings.weight"


def build(weights: Weights) -> onnx.ModelProto:
    """The graph: (texts, tokens) of `input_ids` and `attention_mask` to (texts, words)."""
    from onnx import TensorProto, checker, helper

    net = Net(weights)
    words = _word_weights(net, encoder(net))
    shape = ["texts", "tokens"]
    graph = helper.make_graph(
        net.nodes,
        "sparse",
        [helper.make_tensor_value_info(n, TensorProto.INT64, shape) for n in INPUTS],
        [helper.make_tensor_value_info(words, TensorProto.FLOAT, ["texts", "words"])],
        net.constants,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    checker.check_model(model)
    return model


class Net:
    """A graph under way: each step adds a node and answers the name of what it gives."""

    def __init__(self, weights: Weights, head_width: int = 64) -> None:
        self.weights, self.head_width = weights, head_width
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: set[str] = set()

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, gives: int, *inputs: str, **attributes: Any) -> list[str]:
        from onnx import helper

        names = [f"{kind.lower()}_{len(self.nodes)}" + "_" * more for more in range(gives)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def constant(self, name: str, value: NDArray[Any]) -> str:
        from onnx import numpy_helper

        if name not in self._known:
            self._known.add(name)
            self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def whole(self, *numbers: int) -> str:
        name = "int_" + "_".join(map(str, numbers))
        return self.constant(name, np.array(numbers, dtype=np.int64))

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name])

    def words(self, ids: str) -> str:
        return self.op("Gather", self.weight(_WORDS), ids)

    def linear(self, x: str, name: str) -> str:
        turned = self.constant(f"{name}.weight.T", self.weights[f"{name}.weight"].T)
        return self.op("Add", self.op("MatMul", x, turned), self.weight(f"{name}.bias"))

    def norm(self, x: str, name: str) -> str:
        gamma, beta = (self.weight(f"{name}.LayerNorm.{part}") for part in ("gamma", "beta"))
        return self.op("LayerNormalization", x, gamma, beta, axis=-1, epsilon=_EPSILON)


def encoder(net: Net) -> str:
    """Adds a BERT encoder; the name of its last hidden states."""
    tokens = net.op("Shape", "input_ids", start=1, end=2)
    # All tokens are of the first type, so its embedding is added to the positions at once.
    places = (
        net.weights["bert.embeddings.position_embeddings.weight"]
        + net.weights["bert.embeddings.token_type_embeddings.weight"][0]
    )
    at = net.op("Slice", net.constant("places", places), net.whole(0), tokens, net.whole(0))
    hidden = net.op("Add", net.words("input_ids"), at)
    hidden = net.norm(hidden, "bert.embeddings")
    mask = _additive_mask(net, net.whole(1, 2))
    for layer in range(_layers(net.weights)):
        hidden = _layer(net, f"bert.encoder.layer.{layer}", hidden, mask)
    return hidden


def _layers(weights: Weights) -> int:
    return len([name for name in weights if name.endswith(".attention.self.query.bias")])


def _additive_mask(net: Net, axes: str, masked: float = _MASKED) -> str:
    """0 for a token, `masked` for padding, with axes put in to fit what it is added to."""
    real = net.op("Cast", net.op("Unsqueeze", "attention_mask", axes), to=1)
    off = net.op("Sub", net.constant("one", np.array(1, dtype=np.float32)), real)
    return net.op("Mul", off, net.constant(f"masked{masked}", np.array(masked, dtype=np.float32)))


def _layer(net: Net, name: str, hidden: str, mask: str) -> str:
    seen = net.linear(
        _attention(net, f"{name}.attention.self", hidden, mask), f"{name}.attention.output.dense"
    )
    hidden = net.norm(net.op("Add", seen, hidden), f"{name}.attention.output")
    wide = net.op("Gelu", net.linear(hidden, f"{name}.intermediate.dense"))
    return net.norm(
        net.op("Add", net.linear(wide, f"{name}.output.dense"), hidden), f"{name}.output"
    )


def _attention(net: Net, name: str, hidden: str, mask: str) -> str:
    width = len(net.weights[f"{name}.query.bias"])
    heads = net.whole(0, 0, width // net.head_width, net.head_width)

    def split(part: str, order: list[int]) -> str:
        flat = net.linear(hidden, f"{name}.{part}")
        return net.op("Transpose", net.op("Reshape", flat, heads), perm=order)

    query, value = split("query", [0, 2, 1, 3]), split("value", [0, 2, 1, 3])
    scores = net.op("MatMul", query, split("key", [0, 2, 3, 1]))
    scale = net.constant("scale", np.array(net.head_width**-0.5, dtype=np.float32))
    scores = net.op("Add", net.op("Mul", scores, scale), mask)
    seen = net.op("MatMul", net.op("Softmax", scores, axis=-1), value)
    return net.op("Reshape", net.op("Transpose", seen, perm=[0, 2, 1, 3]), net.whole(0, 0, width))


def _word_weights(net: Net, hidden: str) -> str:
    head = net.op("Gelu", net.linear(hidden, "cls.predictions.transform.dense"))
    head = net.norm(head, "cls.predictions.transform")
    best = net.op("Add", _best_by_words(net, head), net.weight("cls.predictions.bias"))
    one = net.constant("one", np.array(1, dtype=np.float32))
    return net.op("Log", net.op("Add", net.op("Relu", best), one))


def _best_by_words(net: Net, x: str) -> str:
    """The greatest product of each word's embedding and a token, in whole numbers of 8 bits.

    Each word has a scale of its own: weights keep a cosine of .9998 with those of whole precision.
    The greatest sum has the greatest logit and the greatest weight, so scales, biases and the
    logarithm are reckoned once a word. `BLOCK` words at a time: all at once would be megabytes for
    each few tokens, to be fetched and given back.
    """
    embeddings = net.weights[_WORDS]
    words, width = embeddings.shape
    scales = (np.abs(embeddings).max(axis=1) / 127).astype(np.float32)
    scales[scales == 0] = 1.0
    whole = np.rint(embeddings / scales[:, None]).astype(np.int8)
    flat = net.op("Reshape", x, net.whole(-1, width))
    x, x_scale, x_zero = net.ops("DynamicQuantizeLinear", 3, flat)
    off = net.op("Cast", _additive_mask(net, net.whole(2), _NO_SUM), to=6)
    best: list[str] = []
    for start in range(0, words, BLOCK):
        block = whole[start : start + BLOCK]
        held = net.constant(f"{_WORDS}.T8.{start}", block.T)
        sums = net.op("MatMulInteger", x, held, x_zero)
        shape = net.op("Concat", net.op("Shape", "input_ids"), net.whole(len(block)), axis=0)
        masked = net.op("Add", net.op("Reshape", sums, shape), off)
        best.append(net.op("ReduceMax", masked, net.whole(1), keepdims=0))
    scale = net.op("Mul", x_scale, net.constant(f"{_WORDS}.scales", scales))
    return net.op("Mul", net.op("Cast", net.op("Concat", *best, axis=1), to=1), scale)
