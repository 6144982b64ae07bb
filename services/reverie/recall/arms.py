"""The arms of a recall: each has its time; one that fails or is late is named, not waited for."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import structlog

from reverie.domain.access import Principal
from reverie.domain.errors import ReverieError
from reverie.domain.memory import Memory
from reverie.inference.sparse import QUERY_WORDS, Words
from reverie.recall.parts import Parts
from reverie.runtime.telemetry import span
from reverie.runtime.timely import timely
from reverie.store.search import Candidate, Filter, Holding, Link, Scored, TurnHit

log = structlog.get_logger("reverie.recall")

T = TypeVar("T")


@dataclass
class Arms:
    """What the arms took, in milliseconds, and which of them could not."""

    degraded: list[str] = field(default_factory=list)
    took: dict[str, float] = field(default_factory=dict)

    async def ask(self, name: str, seconds: float, arm: Awaitable[T] | None, none: T) -> T:
        """An arm's answer; `none` of one that fails, is late, or is off (None)."""
        if arm is None:
            return none
        begun = time.perf_counter()
        try:
            with span(f"recall {name}"):
                return await timely(arm, seconds)
        except (ReverieError, TimeoutError) as error:
            log.warning("arm_failed", arm=name, error=type(error).__name__)
        except Exception as error:
            log.exception("arm_failed", arm=name, error=type(error).__name__)
        finally:
            spent = (time.perf_counter() - begun) * 1000
            self.took[name] = round(self.took.get(name, 0.0) + spent, 2)
        if name not in self.degraded:
            self.degraded.append(name)
        return none


def nearest(found: Sequence[Sequence[Scored]]) -> list[Scored]:
    """Each memory once, with the best of its scores, the best first."""
    best: dict[UUID, Scored] = {}
    for one in (scored for part in found for scored in part):
        if one.id not in best or one.score > best[one.id].score:
            best[one.id] = one
    return sorted(best.values(), key=lambda one: (-one.score, one.id))


@dataclass(frozen=True)
class Sight:
    """What one recall may see: whose, of what, now or as it was known at a moment."""

    parts: Parts
    who: Principal
    only: Filter
    agent: str | None = None
    as_of: datetime | None = None

    async def words(self, words: str) -> list[Scored]:
        """Memories by BM25 of the prepared question."""
        limit = self.parts.settings.candidates
        if self.as_of:
            return await self.parts.past.words(self.who, words, self.as_of, self.only, limit)
        return await self.parts.search.words(self.who, words, self.only, limit)

    async def meaning(self, texts: Sequence[str]) -> list[Scored]:
        """Memories by the nearness of their vectors to the nearest of the texts."""
        model = await self.parts.models.of(self.who.tenant)
        embedder = await self.parts.model.checked(model.name, model.probe)
        vectors = await embedder.embed(texts)
        limit, search = self.parts.settings.candidates, self.parts.search
        found = [
            await search.meaning(self.who, vector, self.only, limit, model.vectors)
            for vector in vectors
        ]
        return found[0] if len(found) == 1 else nearest(found)[:limit]

    async def weighed_words(self, text: str) -> Words | None:
        """The question as the sparse model reads it."""
        [words] = await self.parts.model.sparse_ready().encode([text], QUERY_WORDS)
        return words

    async def sparse(self, words: Words, ids: Sequence[UUID]) -> list[Scored]:
        """Those of the ids that the sparse model has read, by the words they share."""
        return await self.parts.search.sparse(self.who, words, ids, self.only.scopes)

    async def turns(self, words: str) -> list[TurnHit]:
        """Raw turns by BM25."""
        limit, scopes = self.parts.settings.candidates, self.only.scopes
        return await self.parts.search.turns(self.who, self.agent, words, scopes, limit, self.as_of)

    async def around(self, seeds: Sequence[UUID]) -> list[Link]:
        """The edges of the seeds."""
        fan_out = self.parts.settings.hop_fan_out
        if self.as_of:
            return await self.parts.past.around(
                self.who, seeds, self.only.scopes, fan_out, self.as_of
            )
        return await self.parts.search.around(self.who, seeds, self.only.scopes, fan_out)

    async def candidates(self, ids: Sequence[UUID], holding: Holding) -> dict[UUID, Candidate]:
        """What is known of the ids, and of what may hold a name, as far as it may be answered."""
        if self.as_of is None:
            return await self.parts.search.candidates(self.who, ids, self.only, holding)
        both = [*ids, *holding.ids]
        return await self.parts.past.candidates(self.who, both, self.only, self.as_of)

    async def load(self, ids: Sequence[UUID]) -> dict[UUID, Memory]:
        """The memories, whole."""
        if self.as_of is None:
            return await self.parts.search.load(self.who, ids, self.only.scopes)
        return await self.parts.past.load(self.who, ids, self.only.scopes, self.as_of)

    async def among(self, ids: Sequence[UUID]) -> list[tuple[UUID, UUID, UUID, str, float]]:
        """The edges between memories of a list."""
        if self.as_of is None:
            return await self.parts.search.among(self.who, ids)
        return await self.parts.past.among(self.who, ids, self.as_of)
