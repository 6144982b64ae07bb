"""The graph made of 4-bit weights agrees with the same weights as floats."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from reverie.domain.core.errors import Unavailable
from reverie.inference.e5_weights import BLOCK_SIZE
from reverie.inference.embedder import OnnxEmbedder
from reverie.inference.model_build import ensure_built, find_build_problem
from reverie.inference.model_catalogue import E5_SMALL, ModelFile
from reverie.inference.model_resolver import resolve_model_spec
from tests.inference.bert_reference import BertReference

WIDTH, LAYERS, HEADS, PLACES = 64, 2, 2, 48
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", ":", "\u2581que", "ry", "\u2581pool"]
PIECES += ["连", "接", "池", "\u2581leaks", "a", "b", "ａ"]


class Written:
    """A packed file under way, and the numbers that are in it, written out."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(7)
        self.parts: list[tuple[str, int, int, bytes]] = []
        self.plain: dict[str, NDArray[np.float32]] = {}

    def numbers(self, name: str, *shape: int, around: float = 0.0) -> None:
        made = (around + 0.1 * self.rng.standard_normal(shape)).astype(np.float32)
        self.parts.append((name, 0, made.size, made.tobytes()))
        self.plain[name] = made

    def blocks(self, name: str, outer: int, inner: int) -> None:
        numbers = self.rng.integers(
            0, 16, (outer * inner // BLOCK_SIZE, BLOCK_SIZE), dtype=np.uint8
        )
        scales = self.rng.uniform(0.01, 0.03, len(numbers)).astype(np.float16)
        pairs = numbers[:, :16] | (numbers[:, 16:] << 4)
        rows = (scale.tobytes() + row.tobytes() for scale, row in zip(scales, pairs, strict=True))
        self.parts.append((name, 1, outer * inner, b"".join(rows)))
        values = (numbers.astype(np.float32) - 8) * scales.astype(np.float32)[:, None]
        self.plain[name] = values.reshape(outer, inner)

    def file(self) -> bytes:
        text = [piece.encode() for piece in PIECES]
        starts = np.cumsum([0, *map(len, text)]).astype("<u4")
        scores = -np.arange(len(text), dtype="<f4")
        head = b"E5S1" + struct.pack(
            "<I7ifi", 1, WIDTH, LAYERS, HEADS, 4 * WIDTH, len(text), PLACES, 1, 1e-12, BLOCK_SIZE
        )
        head += struct.pack("<5iQ", len(text), 0, 2, 1, 3, sum(map(len, text)))
        head += starts.tobytes() + scores.tobytes() + b"".join(text) + struct.pack("<iI", 0, 0)
        listed = sum(2 + len(name) + 1 + 4 + 16 for name, *_ in self.parts)
        at, entries = len(head) + 4 + listed, b""
        for name, kind, count, data in self.parts:
            entries += struct.pack("<H", len(name)) + name.encode()
            entries += struct.pack("<BIQQ", kind, count, at, len(data))
            at += len(data)
        return (
            head + struct.pack("<i", len(self.parts)) + entries + b"".join(p[3] for p in self.parts)
        )


@pytest.fixture(scope="module")
def written() -> Written:
    made = Written()
    made.blocks("emb.word", len(PIECES), WIDTH)
    made.numbers("emb.pos", PLACES, WIDTH)
    made.numbers("emb.type", 1, WIDTH)
    for layer in ("emb.ln", *(f"l{n}.{part}" for n in range(LAYERS) for part in ("aln", "oln"))):
        made.numbers(f"{layer}.w", WIDTH, around=1.0)
        made.numbers(f"{layer}.b", WIDTH)
    for n in range(LAYERS):
        for part, outer, inner in (
            *((one, WIDTH, WIDTH) for one in ("q", "k", "v", "ao")),
            ("fi", 4 * WIDTH, WIDTH),
            ("fo", WIDTH, 4 * WIDTH),
        ):
            made.blocks(f"l{n}.{part}.w", outer, inner)
            made.numbers(f"l{n}.{part}.b", outer)
    return made


@pytest.fixture
def place(written: Written, tmp_path: Path) -> Path:
    folder = tmp_path / "models" / E5_SMALL.name
    folder.mkdir(parents=True)
    (folder / E5_SMALL.files[0].name).write_bytes(written.file())
    return folder


def reference(plain: Mapping[str, NDArray[np.float32]]) -> BertReference:
    """The same encoder with every number a float."""
    names = {"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value"}
    names |= {"ao": "attention.output.dense", "fi": "intermediate.dense", "fo": "output.dense"}
    norms = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}
    weights = {
        "bert.embeddings.word_embeddings.weight": plain["emb.word"],
        "bert.embeddings.position_embeddings.weight": plain["emb.pos"],
        "bert.embeddings.token_type_embeddings.weight": plain["emb.type"],
        "bert.embeddings.LayerNorm.gamma": plain["emb.ln.w"],
        "bert.embeddings.LayerNorm.beta": plain["emb.ln.b"],
    }
    for n in range(LAYERS):
        layer = f"bert.encoder.layer.{n}"
        for short, name in names.items():
            weights[f"{layer}.{name}.weight"] = plain[f"l{n}.{short}.w"]
            weights[f"{layer}.{name}.bias"] = plain[f"l{n}.{short}.b"]
        for short, name in norms.items():
            weights[f"{layer}.{name}.gamma"] = plain[f"l{n}.{short}.w"]
            weights[f"{layer}.{name}.beta"] = plain[f"l{n}.{short}.b"]
    return BertReference(weights, LAYERS, HEADS)


async def test_the_graph_agrees_with_the_weights_and_texts_are_prefixed_as_queries(
    place: Path, written: Written
) -> None:
    small = replace(E5_SMALL, dims=WIDTH, max_tokens=PLACES)
    ensure_built(small, place)
    model = OnnxEmbedder.from_spec(small, place)
    tokenizer = model.counter.tokenizer
    encoded = tokenizer.encode("连接池\tpool\x07")
    tokens = ["<s>", "\u2581que", "ry", ":", "\u2581", "连", "接", "池", "\u2581pool", "</s>"]
    assert encoded.tokens == tokens
    assert model.counter.count("pool leaks") == 2
    assert model.counter.vocabulary_share("pool ☃") < 1.0
    bert = reference(written.plain)
    texts = ["连接池 pool", "pool", "pool leaks leaks"]
    vectors = await model.embed(texts)
    for text, vector in zip(texts, vectors, strict=True):
        whole = bert.encode(tokenizer.encode(text).ids).mean(axis=0)
        assert float(vector @ whole) / np.linalg.norm(whole) > 0.995
    longer = await model.embed(["pool " * 200, "pool " * (PLACES - 5)])
    assert float(longer[0] @ longer[1]) > 0.999
    model.close()


def test_the_built_model_is_verified_and_rebuilt(place: Path, written: Written) -> None:
    data = written.file()
    file = ModelFile(
        E5_SMALL.files[0].name, len(data), hashlib.sha256(data).hexdigest(), "in/wheel", ""
    )
    small = replace(E5_SMALL, dims=WIDTH, files=(file,))
    assert find_build_problem(small, place) == "graph.onnx is not made yet"
    home = place.parents[1]
    assert resolve_model_spec(small, home, download=False) == place
    assert find_build_problem(small, place) is None
    (place / "tokenizer.json").write_text("{}")
    assert "tokenizer.json is not what was made" in (find_build_problem(small, place) or "")
    resolve_model_spec(small, home, download=False)
    assert find_build_problem(small, place) is None
    (place / E5_SMALL.files[0].name).write_bytes(b"")
    (place / "graph.onnx").unlink()
    with pytest.raises(Unavailable, match="its graph cannot be made"):
        ensure_built(small, place)
