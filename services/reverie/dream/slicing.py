"""Turns cut into slices, by the meaning of what was said where there is a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from reverie.domain.errors import ReverieError
from reverie.domain.slices import Slice, slice_turns, windows
from reverie.domain.turns import TurnText
from reverie.dream.parts import Parts


async def sliced(parts: Parts, turns: Sequence[TurnText]) -> list[Slice]:
    """The slices of a session's turns; words alone decide while there is no model."""
    return await asyncio.to_thread(slice_turns, turns, await _vectors(parts, windows(turns)))


async def _vectors(parts: Parts, texts: Sequence[str]) -> list[list[float]] | None:
    if parts.model is None or len(texts) < 2:
        return None
    try:
        made = await parts.model.ready().embed(texts)
    except ReverieError:
        return None
    return [[float(value) for value in vector] for vector in made]
