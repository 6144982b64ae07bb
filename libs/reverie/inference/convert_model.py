"""Writes the ONNX graph of a model that is published as weights only.

`model_build` runs it once per model: `python -m reverie.inference.convert_model WEIGHTS FOLDER`.
The graphs are written in ONNX's text format. `*.safetensors` is a BERT with a masked-language head
and becomes a SPLADE graph (Formal et al. 2021). `*.bin` is multilingual-e5-small in 4 bits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, checker, helper, numpy_helper, parser

from reverie.inference.e5_weights import BLOCK_SIZE, build_tokenizer, read_e5_weights

if TYPE_CHECKING:
    import onnx

Arrays = Mapping[str, NDArray[Any]]
Linear = Callable[[str, str, str], str]
"""The nodes of a linear layer: `(output, input, layer)`."""

WORDS_PER_BLOCK = 2_048
"""Words of the vocabulary whose products are in memory at once."""
WORD_ZERO = 128
"""Zero among the unsigned 8-bit numbers of words."""

_MODEL = """
<ir_version: 9, opset_import: ["": 20, "com.microsoft": 1]>
model (int64[texts, tokens] input_ids, int64[texts, tokens] attention_mask) => ({output}) {{
{nodes}
}}
"""
_NORM = "LayerNormalization <axis = -1, epsilon = 1e-12>"


def encoder_nodes(layers: int, heads: int, width: int, words: str, linear: Linear) -> str:
    """Returns the nodes of a BERT encoder; the last hidden states are `hidden_<layers>`.

    `words`: the lookup of words. All tokens are of the first type: `positions` includes the
    embedding of that type.
    """
    start = f"""
    zero = Constant <value_ints = [0]> ()
    one = Constant <value_float = 1.0> ()
    head_shape = Constant <value_ints = [0, 0, {heads}, {width // heads}]> ()
    full_shape = Constant <value_ints = [0, 0, {width}]> ()
    scale = Constant <value_float = {(width // heads) ** -0.5}> ()
    token_count = Shape <start = 1, end = 2> (input_ids)
    token_positions = Slice (positions, zero, token_count, zero)
    words = {words}
    embedded = Add (words, token_positions)
    hidden_0 = {_NORM} (embedded, embeddings_LayerNorm_gamma, embeddings_LayerNorm_beta)
    {_mask_nodes("padding", [1, 2], -10_000.0)}"""
    return start + "".join(_layer_nodes(layer, linear) for layer in range(layers))


def _mask_nodes(output: str, axes: list[int], masked: float) -> str:
    """0 for a token and `masked` for padding, with axes added to fit what it is added to."""
    return f"""
    {output}_axes = Constant <value_ints = {axes}> ()
    {output}_value = Constant <value_float = {masked}> ()
    {output}_mask = Unsqueeze (attention_mask, {output}_axes)
    {output}_tokens = Cast <to = {TensorProto.FLOAT}> ({output}_mask)
    {output}_inverse = Sub (one, {output}_tokens)
    {output} = Mul ({output}_inverse, {output}_value)"""


def _layer_nodes(layer: int, linear: Linear) -> str:
    x, at = f"hidden_{layer}", f"encoder_layer_{layer}"

    def split_heads(part: str, order: list[int]) -> str:
        return f"""
    {linear(f"{at}_{part}_all", x, f"{at}_attention_self_{part}")}
    {at}_{part}_split = Reshape ({at}_{part}_all, head_shape)
    {at}_{part} = Transpose <perm = {order}> ({at}_{part}_split)"""

    def add_and_norm(output: str, inner: str, residual: str, name: str) -> str:
        return f"""
    {output}_sum = Add ({inner}, {residual})
    {output} = {_NORM} ({output}_sum, {name}_LayerNorm_gamma, {name}_LayerNorm_beta)"""

    return f"""
    {split_heads("query", [0, 2, 1, 3])}
    {split_heads("value", [0, 2, 1, 3])}
    {split_heads("key", [0, 2, 3, 1])}
    {at}_products = MatMul ({at}_query, {at}_key)
    {at}_scaled = Mul ({at}_products, scale)
    {at}_masked = Add ({at}_scaled, padding)
    {at}_scores = Softmax <axis = -1> ({at}_masked)
    {at}_mixed = MatMul ({at}_scores, {at}_value)
    {at}_merged = Transpose <perm = [0, 2, 1, 3]> ({at}_mixed)
    {at}_attended = Reshape ({at}_merged, full_shape)
    {linear(f"{at}_projected", f"{at}_attended", f"{at}_attention_output_dense")}
    {add_and_norm(f"{at}_middle", f"{at}_projected", x, f"{at}_attention_output")}
    {linear(f"{at}_wide", f"{at}_middle", f"{at}_intermediate_dense")}
    {at}_active = Gelu ({at}_wide)
    {linear(f"{at}_narrow", f"{at}_active", f"{at}_output_dense")}
    {add_and_norm(f"hidden_{layer + 1}", f"{at}_narrow", f"{at}_middle", f"{at}_output")}"""


def build_model(output: str, nodes: str, constants: list[onnx.TensorProto]) -> onnx.ModelProto:
    """The model, with those of the constants that its nodes use."""
    model = parser.parse_model(_MODEL.format(output=output, nodes=nodes))
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(constant for constant in constants if constant.name in used)
    return model


def to_constants(arrays: Arrays) -> list[onnx.TensorProto]:
    """The arrays as constants of a graph."""
    return [
        numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in arrays.items()
    ]


def build_splade(weights: Arrays) -> onnx.ModelProto:
    """For each word of the vocabulary, the maximum over the tokens of log(1 + relu(logit)).

    It reads one text at a time, without padding.

    The product with the vocabulary runs in 8-bit integers, each word with a scale of its own. They
    are unsigned: sums of signed ones are cut off on processors without VNNI instructions. The
    largest product gives the largest logit, so scale, bias and logarithm are applied once a word.
    The vocabulary is split into blocks: all products of a text at once would take megabytes.
    """
    arrays = {
        name.replace("bert.", "").replace("cls.predictions.", "").replace(".", "_"): array
        for name, array in weights.items()
    }
    arrays |= {f"{name}_T": array.T for name, array in arrays.items() if array.ndim == 2}
    arrays["positions"] = (
        arrays["embeddings_position_embeddings_weight"]
        + arrays["embeddings_token_type_embeddings_weight"][0]
    )
    words = arrays["embeddings_word_embeddings_weight"]
    vocabulary, width = words.shape
    scales = (np.abs(words).max(axis=1) / 127).astype(np.float32)
    scales[scales == 0] = 1.0
    arrays["word_scales"] = scales
    quantized = (np.rint(words / scales[:, None]) + WORD_ZERO).astype(np.uint8)
    arrays["word_zero"] = np.array(WORD_ZERO, np.uint8)

    def linear(output: str, x: str, name: str) -> str:
        return f"""
    {output}_product = MatMul ({x}, {name}_weight_T)
    {output} = Add ({output}_product, {name}_bias)"""

    layers = len([name for name in arrays if name.endswith("attention_self_query_bias")])
    lookup = "Gather (embeddings_word_embeddings_weight, input_ids)"
    norm = f"{_NORM} (head_active, transform_LayerNorm_gamma, transform_LayerNorm_beta)"
    nodes = f"""
    {encoder_nodes(layers, width // 64, width, lookup, linear)}
    {linear("head_dense", f"hidden_{layers}", "transform_dense")}
    head_active = Gelu (head_dense)
    head = {norm}
    flat_shape = Constant <value_ints = [-1, {width}]> ()
    head_flat = Reshape (head, flat_shape)
    head_int8, head_scale, head_zero = DynamicQuantizeLinear (head_flat)"""
    starts = range(0, vocabulary, WORDS_PER_BLOCK)
    for start in starts:
        block = quantized[start : start + WORDS_PER_BLOCK]
        arrays[f"block_{start}"] = block.T
        nodes += f"""
    products_{start} = MatMulInteger (head_int8, block_{start}, head_zero, word_zero)
    max_{start} = ReduceMax (products_{start}, token_axis)"""
    nodes += f"""
    maxima = Concat <axis = 1> ({", ".join(f"max_{start}" for start in starts)})
    maxima_float = Cast <to = {TensorProto.FLOAT}> (maxima)
    scale_by_word = Mul (head_scale, word_scales)
    products = Mul (maxima_float, scale_by_word)
    logits = Add (products, bias)
    positive = Relu (logits)
    shifted = Add (positive, one)
    weights = Log (shifted)"""
    nodes = "token_axis = Constant <value_ints = [0]> ()" + nodes
    return build_model("float[texts, words] weights", nodes, to_constants(arrays))


def build_e5(data: bytes) -> tuple[onnx.ModelProto, str]:
    """Builds the graph of multilingual-e5-small, with 4-bit matrices, and its tokenizer."""
    weights = read_e5_weights(data)
    constants = to_constants(weights.arrays)
    for name, matrix in weights.matrices.items():
        rows = matrix.values.shape[0]
        packed = matrix.pack().reshape(rows, -1, BLOCK_SIZE // 2)
        constants += to_constants({f"{name}_blocks": packed, f"{name}_scales": matrix.scales})
    words = weights.matrices["embeddings_word_embeddings"]
    # The lookup wants signed numbers: from -8 to 7 in place of from 0 to 15.
    signed = replace(words, values=words.values ^ np.uint8(8)).pack().tobytes()
    constants.append(
        helper.make_tensor("words_int4", TensorProto.INT4, words.values.shape, signed, raw=True)
    )

    def linear(output: str, x: str, name: str) -> str:
        rows, columns = weights.matrices[name].values.shape
        # Accuracy level 4 rounds activations to 8 bits: two to three times as fast.
        return f"""
    {output}_product = com.microsoft.MatMulNBits <K = {columns}, N = {rows}, bits = 4,
        block_size = {BLOCK_SIZE}, accuracy_level = 4> ({x}, {name}_blocks, {name}_scales)
    {output} = Add ({output}_product, {name}_bias)"""

    lookup = f"""com.microsoft.GatherBlockQuantized <block_size = {BLOCK_SIZE}, gather_axis = 0,
        quantize_axis = 1> (words_int4, input_ids, embeddings_word_embeddings_scales)"""
    nodes = encoder_nodes(weights.layers, weights.heads, weights.width, lookup, linear)
    output = f"float[texts, tokens, {weights.width}] hidden_{weights.layers}"
    return build_model(output, nodes, constants), build_tokenizer(weights).to_str()


def main(weights: Path, folder: Path) -> None:
    """Writes `graph.onnx`, and for E5 `tokenizer.json`, into the folder."""
    if weights.suffix == ".safetensors":
        from safetensors.numpy import load_file

        model = build_splade(load_file(weights))
        checker.check_model(model)
    else:
        model, tokenizer = build_e5(weights.read_bytes())
        (folder / "tokenizer.json").write_text(tokenizer, "utf-8")
    (folder / "graph.onnx").write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
