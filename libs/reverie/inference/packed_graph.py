"""The graph and the tokenizer of an embedding model that comes in 4 bits: multilingual-e5-small.

onnxruntime multiplies by the 4-bit blocks as they are (`MatMulNBits`, `GatherBlockQuantized`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reverie.inference.packed import BLOCK, Blocks, Packed, unpack
from reverie.inference.weights_graph import INPUTS, IR_VERSION, OPSET, Net, Weights, encoder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MICROSOFT = "com.microsoft"
_INTEGERS = 4
"""Activations may be rounded to 8 bits in a product: two to three times as fast."""
_SPACES = "[\t\n\f\r\u0085\u200b]"
_CONTROLS = "[\u0001-\u0008\u000b\u000e-\u001f\u007f\u008f\u009f]"
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def build(data: bytes) -> list[bytes]:
    """The graph, and the tokenizer's JSON, of the weights in `data`."""
    packed = unpack(data)
    return [_graph(packed), tokenizer_of(packed).to_str().encode()]


def tokenizer_of(packed: Packed) -> Tokenizer:
    """The tokenizer, which puts `query:` before each text, as the model wants its texts told."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    made = Tokenizer(models.Unigram(packed.pieces, packed.unknown, byte_fallback=False))
    made.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_SPACES), " "),
            normalizers.Replace(Regex(_CONTROLS), ""),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    number, told = made.token_to_id, made.encode("query:")
    asked = {"id": "<query>", "ids": told.ids, "tokens": told.tokens}
    made.post_processor = processors.TemplateProcessing(
        single=["<s>", "<query>", "$A", "</s>"],
        special_tokens=[("<s>", number("<s>")), asked, ("</s>", number("</s>"))],
    )
    return made


class _Net(Net):
    """A graph whose matrices stay in blocks."""

    def __init__(self, packed: Packed) -> None:
        super().__init__(_named(packed), packed.width // packed.heads)
        self._blocks = {_name(name): one for name, one in packed.blocks.items()}

    def words(self, ids: str) -> str:
        name = "bert.embeddings.word_embeddings"
        held, scales = self._in_blocks(name, signed=True)
        return self.op(
            "GatherBlockQuantized", held, ids, scales,
            domain=_MICROSOFT, block_size=BLOCK, gather_axis=0, quantize_axis=1,
        )  # fmt: skip

    def linear(self, x: str, name: str) -> str:
        outer, inner = self._blocks[name].numbers.shape
        held, scales = self._in_blocks(name, signed=False)
        product = self.op(
            "MatMulNBits", x, held, scales,
            domain=_MICROSOFT, K=inner, N=outer, bits=4, block_size=BLOCK, accuracy_level=_INTEGERS,
        )  # fmt: skip
        return self.op("Add", product, self.weight(f"{name}.bias"))

    def _in_blocks(self, name: str, signed: bool) -> tuple[str, str]:
        """The blocks as a constant, and their scales."""
        from onnx import TensorProto, helper

        one, held = self._blocks[name], f"{name}.blocks"
        if signed:
            # 8 is their zero; in two's complement that is one bit turned over.
            turned = (one.numbers ^ 8).astype(np.uint8)
            raw = Blocks(turned, one.scales).packed.tobytes()
            self.constants.append(
                helper.make_tensor(held, TensorProto.INT4, one.numbers.shape, raw, raw=True)
            )
        else:
            shape = (one.numbers.shape[0], -1, BLOCK // 2)
            self.constant(held, one.packed.reshape(shape))
        return held, self.constant(f"{name}.scales", one.scales)


def _graph(packed: Packed) -> bytes:
    from onnx import TensorProto, helper

    net = _Net(packed)
    hidden = encoder(net)
    shape = ["texts", "tokens"]
    inputs = [helper.make_tensor_value_info(one, TensorProto.INT64, shape) for one in INPUTS]
    output = helper.make_tensor_value_info(hidden, TensorProto.FLOAT, [*shape, packed.width])
    graph = helper.make_graph(net.nodes, "packed", inputs, [output], net.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(_MICROSOFT, 1)]
    model: Any = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    made: bytes = model.SerializeToString()
    return made


def _named(packed: Packed) -> Weights:
    """The plain numbers under the names that BERT gives them."""
    named = {_name(name): one for name, one in packed.plain.items()}
    width = packed.width
    return named | {
        "bert.embeddings.position_embeddings.weight": packed.plain["emb.pos"].reshape(-1, width),
        "bert.embeddings.token_type_embeddings.weight": packed.plain["emb.type"].reshape(-1, width),
    }


def _name(name: str) -> str:
    """`l3.q.b` is bert.encoder.layer.3.attention.self.query.bias; matrices go by what they do."""
    first, *rest = name.split(".")
    if first == "emb":
        known = {"word": "word_embeddings", "ln": "LayerNorm"}
        return _part(f"bert.embeddings.{known.get(rest[0], rest[0])}", rest[1:])
    return _part(f"bert.encoder.layer.{first[1:]}.{_LAYER[rest[0]]}", rest[1:])


def _part(name: str, rest: list[str]) -> str:
    norm = name.endswith("LayerNorm")
    parts = {"b": "beta" if norm else "bias", "w": "gamma" if norm else ""}
    return ".".join(filter(None, [name, *(parts[one] for one in rest)]))
