"""The extractor interface, the rule-based extractor, and the check of cited turns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from reverie.domain.extraction.conversation.topic_segmentation import TopicSegment
from reverie.domain.extraction.record_validation import DroppedStatement
from reverie.domain.extraction.rule_extractor import ExtractedMemory, extract_memories
from reverie.store.sessions.dreams import DreamLease, DreamSession


@dataclass(frozen=True)
class ExtractionContext:
    """The conversation of a slice. Scope and trust come from here, never from the text."""

    lease: DreamLease
    session: DreamSession


RecordOutcome = Literal["rules", "not_asked", "model", "failed", "empty", "unsupported"]
"""What wrote the record of a subtopic: a model, or the rules, and why the rules.

`rules`: no model is set. `not_asked`: the subtopic is short. `failed`: there was no usable answer
in time. `empty`, `unsupported`: the answer had no record, or none that the turns support.
"""


@dataclass(frozen=True)
class Extraction:
    """The memories of a slice.

    `prompt`: name and version of what a model was asked, if memories are from its answers.
    `degraded`: why the rules replaced a configured model. `llm_calls` and `llm_tokens` include
    failed calls. `outcomes`: subtopics by who wrote their record. `kept_statements`: of a model.
    `dropped`: statements of a model that its turns do not support.
    """

    memories: Sequence[ExtractedMemory]
    prompt: str | None = None
    degraded: frozenset[str] = frozenset()
    llm_calls: int = 0
    llm_tokens: int = 0
    outcomes: Mapping[RecordOutcome, int] = field(default_factory=dict)
    kept_statements: int = 0
    dropped: Sequence[DroppedStatement] = ()


class Extractor(Protocol):
    """Extracts segments of a slice. An implementation falls back to `RuleExtractor` on failure."""

    async def extract(self, part: TopicSegment, context: ExtractionContext) -> Extraction:
        """The segments of one slice, each citing turns of it."""
        ...


class RuleExtractor:
    """The deterministic extraction: chosen sentences, cleaned."""

    async def extract(self, part: TopicSegment, context: ExtractionContext) -> Extraction:
        """As `Extractor.extract`; the same slice gives the same segments."""
        memories = await asyncio.to_thread(extract_memories, [part])
        return Extraction(memories, outcomes={"rules": sum(m.record is not None for m in memories)})


def drop_uncited(topic: TopicSegment, extraction: Extraction) -> Extraction:
    """Without what cites no turn of the slice; of the rest, without turns of elsewhere."""
    turn_ids = {turn.id for turn in topic.turns}
    memories = (
        replace(memory, turns=tuple(t for t in memory.turns if t in turn_ids))
        for memory in extraction.memories
    )
    return replace(extraction, memories=[memory for memory in memories if memory.turns])
