"""Settings of memory itself: how it fades, what it is searched by, what git does to it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic_settings import BaseSettings

from reverie.domain.core.confidence import BOOST, FLOOR, DecayPolicy, parse_half_lives
from reverie.runtime.settings.field_types import WebUrl


class EmbeddingProfile(BaseModel):
    """An OpenAI-compatible endpoint; `model`: what to name there, if not the profile's name."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: WebUrl
    dims: Annotated[int, Field(ge=1, le=3072)]
    model: str | None = None
    key: SecretStr | None = None


class MemorySettings(BaseSettings):
    """The settings of `Settings` that say how memory behaves."""

    decay_enabled: bool = Field(
        True, description="whether memories lose confidence over time and are archived at the floor"
    )
    confidence_half_life_days: dict[str, Annotated[float, Field(gt=0)]] = Field(
        {},
        description='days after which the confidence of a memory is halved, by kind, as {"bug": '
        '7}; "default" is for all other kinds; unset: 30',
    )
    decay_floor: Annotated[float, Field(ge=0, le=1)] = Field(
        FLOOR, description="confidence below which no memory falls; maintenance archives it there"
    )
    decay_boost: Annotated[float, Field(ge=0, le=1)] = Field(
        BOOST,
        description="confidence that a memory gains each time that a session uses it; its "
        "neighbours gain a quarter of it",
    )
    recall_limit: Annotated[int, Field(ge=1, le=100)] = Field(
        10, description="memories that a recall returns if its caller names no limit"
    )

    embeddings_enabled: bool = Field(
        True,
        description="whether memories are also found by meaning; if not, words alone decide, and no"
        " model is loaded",
    )
    embedding_profiles: dict[Annotated[str, Field(min_length=1)], EmbeddingProfile] = Field(
        {},
        description='further embedding endpoints by name, as {"large": {"url": "https://host/v1",'
        ' "dims": 1536, "model": "...", "key": "..."}}; `reverie reembed --tenant NAME --model'
        " large` moves a tenant to one",
    )
    stale_marks: bool = Field(
        True, description="whether git changes mark the memories that they make doubtful"
    )

    @property
    def decay_policy(self) -> DecayPolicy:
        """How confidence falls. Raises `InvalidInput` for a name that is no kind."""
        half_lives = parse_half_lives(self.confidence_half_life_days)
        return DecayPolicy(half_lives, self.decay_floor, self.decay_enabled)
