"""Bodies of models: which there are, and how far they are."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from reverie.contracts.base import Answer


class ModelBody(Answer):
    """A model and what it is for.

    `state`: `ready` is loaded, or an endpoint that is asked when needed; `missing` cannot be had
    now. `active`: what the tenant's memories mean goes by it. `chunks` of them are to have a vector
    of it, `filled` have one; both are told of one that is being filled beside the active one.
    `max_tokens`: what it reads at once; a longer text is read in parts. `used_for`: what asks it.
    """

    role: Literal["embedding", "sparse", "reranker", "language"]
    name: str
    place: Literal["local", "endpoint"]
    state: Literal["ready", "loading", "missing"]
    active: bool = True
    provider: str | None = None
    dims: int | None = None
    max_tokens: int | None = None
    licence: str | None = None
    filled: int | None = None
    chunks: int | None = None
    used_for: list[str] = Field(default_factory=list)


class Models(Answer):
    """`GET /v1/models`: the models of the gateway and of the tenant that asks."""

    models: list[ModelBody]
