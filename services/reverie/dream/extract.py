"""The seam between a slice and its segments: rules, or a language model in their place."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from reverie.domain.distil import Distilled, distil
from reverie.domain.slices import Slice
from reverie.store.dreams import DreamSession, Lease

RULES = "rules"


@dataclass(frozen=True)
class Context:
    """Whose conversation a slice is of. Scope and trust come from here, never from the text."""

    lease: Lease
    session: DreamSession


@dataclass(frozen=True)
class Extraction:
    """The segments of a slice. `by`: the rules, or the prompt and its version that made them.

    `degraded` says why the rules stood in for a model that was to be asked; `llm_calls` and
    `llm_tokens` are what was spent, also in vain.
    """

    segments: Sequence[Distilled]
    by: str = RULES
    degraded: str | None = None
    llm_calls: int = 0
    llm_tokens: int = 0


class Extractor(Protocol):
    """Makes segments of a slice. An implementation falls back to `Rules` where it fails."""

    async def extract(self, part: Slice, context: Context) -> Extraction:
        """The segments of one slice, each citing turns of it."""
        ...


class Rules:
    """The deterministic extraction: chosen sentences, cleaned."""

    async def extract(self, part: Slice, context: Context) -> Extraction:
        """As `Extractor.extract`; the same slice gives the same segments."""
        return Extraction(await asyncio.to_thread(distil, [part]))


def cited(part: Slice, made: Extraction) -> Extraction:
    """Without what cites no turn of the slice; of the rest, without turns of elsewhere."""
    own = {turn.id for turn in part.turns}
    kept = (replace(one, turns=tuple(t for t in one.turns if t in own)) for one in made.segments)
    return replace(made, segments=[one for one in kept if one.turns])
