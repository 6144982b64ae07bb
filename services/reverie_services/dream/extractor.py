"""The extractor interface, the rule-based extractor, and the check of cited turns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from reverie.domain.extraction.conversation.topic_segmentation import TopicSegment
from reverie.domain.extraction.record_validation import DroppedStatement
from reverie.domain.extraction.rule_extractor import ExtractedMemory, extract_memories
from reverie.store.sessions.dream_queue import DreamLease

RecordOutcome = Literal["rules", "not_asked", "model", "failed", "empty", "unsupported"]
"""Who wrote the record of a subtopic: a model, or the rules and why.

`rules`: no model is set. `not_asked`: the subtopic is short. `failed`: there was no usable answer
in time. `empty`, `unsupported`: the answer had no record, or none that the turns support.
"""


@dataclass(frozen=True)
class Extraction:
    """The memories of a topic.

    `prompt`: name and version of what a model was asked, if memories are from its answers.
    `degraded`: why the rules replaced a configured model. `llm_calls` and `llm_tokens` include
    failed calls. `outcomes`: the number of subtopics by who wrote their record. `kept_statements`
    and `dropped`: statements of a model that the turns support, and those that they do not.
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
    """Extracts memories of a topic. An implementation falls back to `RuleExtractor` on failure."""

    async def extract(self, topic: TopicSegment, lease: DreamLease) -> Extraction:
        """The memories of one topic, each citing turns of it.

        Scope and rights come from the lease, never from the text.
        """
        ...


class RuleExtractor:
    """Extracts by rules: the most important sentences, cleaned. The same topic gives the same."""

    async def extract(self, topic: TopicSegment, lease: DreamLease) -> Extraction:
        """As `Extractor.extract`."""
        memories = await asyncio.to_thread(extract_memories, [topic])
        return Extraction(memories, outcomes={"rules": sum(m.record is not None for m in memories)})


def drop_uncited(topic: TopicSegment, extraction: Extraction) -> Extraction:
    """Drops memories that cite no turn of the topic, and citations of other turns."""
    turn_ids = {turn.id for turn in topic.turns}
    memories = (
        replace(memory, turns=tuple(t for t in memory.turns if t in turn_ids))
        for memory in extraction.memories
    )
    return replace(extraction, memories=[memory for memory in memories if memory.turns])
