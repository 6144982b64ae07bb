"""The extractor interface, the rule-based extractor, and the check of cited turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from reverie.domain.extraction.rule_extractor import ExtractedMemory, extract_memories
from reverie.domain.extraction.topic_segmentation import TopicSegment
from reverie.store.sessions.dreams import DreamLease, DreamSession

RULES = "rules"


@dataclass(frozen=True)
class ExtractionContext:
    """The conversation of a slice. Scope and trust come from here, never from the text."""

    lease: DreamLease
    session: DreamSession


@dataclass(frozen=True)
class Extraction:
    """The segments of a slice.

    `produced_by`: the rules, or the prompt and its version. `degraded`: why the rules replaced a
    configured model. `llm_calls` and `llm_tokens` include failed calls.
    """

    memories: Sequence[ExtractedMemory]
    produced_by: str = RULES
    degraded: str | None = None
    llm_calls: int = 0
    llm_tokens: int = 0


class Extractor(Protocol):
    """Extracts segments of a slice. An implementation falls back to `RuleExtractor` on failure."""

    async def extract(self, part: TopicSegment, context: ExtractionContext) -> Extraction:
        """The segments of one slice, each citing turns of it."""
        ...


class RuleExtractor:
    """The deterministic extraction: chosen sentences, cleaned."""

    async def extract(self, part: TopicSegment, context: ExtractionContext) -> Extraction:
        """As `Extractor.extract`; the same slice gives the same segments."""
        return Extraction(await asyncio.to_thread(extract_memories, [part]))


def drop_uncited(topic: TopicSegment, extraction: Extraction) -> Extraction:
    """Without what cites no turn of the slice; of the rest, without turns of elsewhere."""
    turn_ids = {turn.id for turn in topic.turns}
    memories = (
        replace(memory, turns=tuple(t for t in memory.turns if t in turn_ids))
        for memory in extraction.memories
    )
    return replace(extraction, memories=[memory for memory in memories if memory.turns])
