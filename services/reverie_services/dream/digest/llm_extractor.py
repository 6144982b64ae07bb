"""Extracts memories with a language model and validates them against the cited turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import structlog
from pydantic import BaseModel, Field

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.content_checks import contains_instructions, is_grounded
from reverie.domain.extraction.decision_records import MAX_RECORD_CHARS as MAX_CONTENT
from reverie.domain.extraction.rule_extractor import MAX_TAGS, ExtractedMemory
from reverie.domain.extraction.topic_segmentation import TopicSegment
from reverie.domain.extraction.work_log import MAX_FILES, collect_work_log, find_last_writes
from reverie.domain.redaction.redactor import Redactor, RedactorLoader
from reverie.domain.text.turns import TurnText
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import LanguageModelError, UsageTally
from reverie.inference.llm_prompts import fence_items, get_prompt
from reverie_services.dream.extractor import Extraction, ExtractionContext, Extractor

log = structlog.get_logger("reverie.dream")

MIN_CHARS = 200
"""A shorter slice is not worth a call."""

TURN_CHARS = 4_000
MIN_CONTENT_LENGTH = 15
MAX_TOOL_PRIORITY = 0.4
"""The highest importance of a memory that only tool output supports."""

_USER_ONLY_KINDS = frozenset({Kind.CONVENTION, Kind.PREFERENCE})

ExtractableKind = Literal[
    "decision", "convention", "preference", "bug", "lesson", "spec", "task", "skill", "context"
]


class ExtractedMemoryAnswer(BaseModel):
    """A memory in the model's words, and the numbers of the turns that support it."""

    kind: ExtractableKind
    content: str = Field(max_length=4_000)
    turns: list[int] = Field(max_length=200)
    priority: Annotated[float, Field(ge=0, le=1)] = 0.5
    keywords: list[str] = Field(default_factory=list, max_length=50)
    files: list[str] = Field(default_factory=list, max_length=100)


class ExtractedMemoriesAnswer(BaseModel):
    """The memories that the model extracted."""

    memories: list[ExtractedMemoryAnswer] = Field(max_length=60)


class LlmExtractor:
    """Asks a language model; what it does not answer, the rules do."""

    def __init__(
        self,
        model: LanguageModel,
        load_redactor: RedactorLoader,
        rules: Extractor,
    ) -> None:
        self._model, self._load_redactor, self._rules = model, load_redactor, rules

    async def extract(self, part: TopicSegment, context: ExtractionContext) -> Extraction:
        """Implements `Extractor.extract`; short slices are left to the rules."""
        if sum(len(turn.content) for turn in part.turns) < MIN_CHARS:
            return await self._rules.extract(part, context)
        tally = UsageTally()
        lease = context.lease
        redactor = (await self._load_redactor(lease.tenant)).within(lease.scope)
        text = await asyncio.to_thread(_render_turns, part.turns, redactor)
        task = get_prompt("distil")
        try:
            answer = await self._model.ask(
                context.lease.tenant, task, text, ExtractedMemoriesAnswer, tally
            )
        except LanguageModelError as error:
            extraction = await self._rules.extract(part, context)
            return Extraction(
                extraction.memories,
                extraction.produced_by,
                f"llm: {error}",
                tally.calls,
                tally.total_tokens,
            )
        produced_by = f"{task.label} {self._model.name}"
        memories = await asyncio.to_thread(
            validate_memories, answer.memories, part.turns, produced_by
        )
        return Extraction(memories, task.label, None, tally.calls, tally.total_tokens)


def validate_memories(
    answers: Sequence[ExtractedMemoryAnswer], turns: Sequence[TurnText], produced_by: str = ""
) -> list[ExtractedMemory]:
    """Keeps the segments that the cited turns support; logs the others."""
    memories: list[ExtractedMemory] = []
    reasons: list[str] = []
    for answer in answers:
        memory = validate_memory(answer, turns)
        if isinstance(memory, str):
            reasons.append(memory)
        else:
            memories.append(replace(memory, produced_by=produced_by))
    if reasons:
        log.info("segments_rejected", reasons=reasons)
    return memories


def validate_memory(
    answer: ExtractedMemoryAnswer, turns: Sequence[TurnText]
) -> ExtractedMemory | str:
    """Returns the memory, or the reason for its rejection.

    The author of the cited turns decides what kind it may be, not the text.
    """
    if not answer.turns:
        return "it cites nothing"
    if not all(1 <= n <= len(turns) for n in answer.turns):
        return "it cites a turn that is not there"
    content = " ".join(answer.content.split())
    if not MIN_CONTENT_LENGTH <= len(content) <= MAX_CONTENT:
        return "it is too short or too long"
    if contains_instructions(content):
        return "it speaks to a model"
    cited = [turns[n - 1] for n in sorted(set(answer.turns))]
    if not is_grounded(content, "\n".join(turn.content for turn in cited)):
        return "the turns do not say it"
    roles = {turn.role for turn in cited}
    kind = Kind(answer.kind)
    files = _find_mentioned_files(answer.files, cited)
    return ExtractedMemory(
        content=content,
        kind=Kind.CONTEXT if kind in _USER_ONLY_KINDS and "user" not in roles else kind,
        tags=_normalize_tags(answer.keywords),
        priority=min(answer.priority, MAX_TOOL_PRIORITY) if roles == {"tool"} else answer.priority,
        files=files,
        turns=tuple(turn.id for turn in cited),
        at=cited[-1].at,
        file_writes=find_last_writes(files, collect_work_log(turns), cited[-1].at),
    )


def _normalize_tags(keywords: Sequence[str]) -> tuple[str, ...]:
    words = (" ".join(word.split())[:64] for word in keywords)
    return tuple(dict.fromkeys(word for word in words if word))[:MAX_TAGS]


def _find_mentioned_files(names: Sequence[str], cited: Sequence[TurnText]) -> tuple[str, ...]:
    text = "\n".join(turn.content for turn in cited)
    return tuple(dict.fromkeys(file for file in names if file.strip() and file in text))[:MAX_FILES]


def _render_turns(turns: Sequence[TurnText], redactor: Redactor) -> str:
    labels = (f"{turn.role} {turn.tool or ''}" for turn in turns)
    texts = (redactor.redact(turn.content[:TURN_CHARS]).text for turn in turns)
    return fence_items(zip(labels, texts, strict=True))
