"""Extracts memories with a language model: subtopics as records, checked against their turns."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from reverie.domain.extraction.conversation.exchanges import Exchange
from reverie.domain.extraction.conversation.topic_segmentation import TopicSegment
from reverie.domain.extraction.records.decision_records import DecisionRecord
from reverie.domain.extraction.records.record_builder import build_record
from reverie.domain.extraction.records.record_statements import RecordStatement
from reverie.domain.extraction.records.subtopics import annotate_exchanges, split_subtopics
from reverie.domain.extraction.rule_extractor import TopicReading, extract_memories
from reverie.domain.redaction.redactor import Redactor, RedactorLoader
from reverie.domain.text.turns import TurnText
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import LanguageModelError, UsageTally
from reverie.inference.llm_prompts import fence_items, get_prompt
from reverie.store.sessions.dream_queue import DreamLease
from reverie_services.dream.digest.record_answers import (
    CheckedAnswer,
    RecordAnswer,
    check_answer,
)
from reverie_services.dream.extractor import Extraction, RecordOutcome

MIN_CHARS = 200
"""A shorter subtopic is not worth a call."""

MAX_SUBTOPIC_CHARS, MAX_TURN_CHARS, MAX_TOOL_CHARS, MIN_TURN_CHARS = 24_000, 4_000, 800, 200
"""Limits of what is sent for a subtopic, in characters: about 6,000 tokens."""
TIMEOUTS_PER_RECORD = 2
"""All tries for a record together may take so many times `llm_timeout`."""


NOT_ANSWERED = CheckedAnswer(None, (), ())


@dataclass(frozen=True)
class SubtopicResult:
    """The record of a subtopic, who wrote it and why, and what is left of the model's answer."""

    record: DecisionRecord | None
    outcome: RecordOutcome
    checked: CheckedAnswer = NOT_ANSWERED
    degraded: str | None = None


class LlmExtractor:
    """Asks a language model for the record of each subtopic. Where its answer is late, broken or
    not supported by the turns, the rules' record stands."""

    def __init__(self, model: LanguageModel, load_redactor: RedactorLoader) -> None:
        self._model, self._load_redactor = model, load_redactor

    async def extract(self, topic: TopicSegment, lease: DreamLease) -> Extraction:
        """Implements `Extractor.extract`; short subtopics are left to the rules."""
        redactor = (await self._load_redactor(lease.tenant)).within(lease.scope)
        subtopics, stated_lasting = await asyncio.to_thread(_read_by_rules, topic)
        tally = UsageTally()
        results = await asyncio.gather(
            *(
                self._write_record(lease.tenant, exchanges, record, redactor, tally)
                for exchanges, record in subtopics
            )
        )
        lasting = [statement for result in results for statement in result.checked.lasting]
        restated = {statement.turn.id for statement in lasting}
        lasting += [s for s in stated_lasting if s.turn.id not in restated]
        records = [result.record for result in results if result.record]
        reading = TopicReading(records, lasting)
        memories = await asyncio.to_thread(extract_memories, [topic], read=lambda _: reading)
        outcomes = Counter(result.outcome for result in results)
        return Extraction(
            memories,
            prompt=get_prompt("record").label if outcomes["model"] else None,
            degraded=frozenset(result.degraded for result in results if result.degraded),
            llm_calls=tally.calls,
            llm_tokens=tally.total_tokens,
            outcomes=outcomes,
            kept_statements=sum(result.checked.kept for result in results),
            dropped=[
                replace(statement, text=redactor.redact(statement.text).text)
                for result in results
                for statement in result.checked.dropped
            ],
        )

    async def _write_record(
        self,
        tenant: int,
        exchanges: Sequence[Exchange],
        rules_record: DecisionRecord | None,
        redactor: Redactor,
        tally: UsageTally,
    ) -> SubtopicResult:
        turns = [t for e in exchanges for t in (e.opening, *e.replies) if t is not None]
        if sum(len(turn.content) for turn in turns) < MIN_CHARS:
            return SubtopicResult(rules_record, "not_asked")
        prompt = get_prompt("record")
        shown = await asyncio.to_thread(shorten_turns, turns, redactor)
        text = fence_items((f"{turn.role} {turn.tool or ''}", turn.content) for turn in shown)
        time_limit = TIMEOUTS_PER_RECORD * self._model.endpoint.timeout
        try:
            answer = await self._model.ask(tenant, prompt, text, RecordAnswer, tally, time_limit)
        except LanguageModelError as error:
            return SubtopicResult(rules_record, "failed", degraded=f"llm: {error}")
        checked = await asyncio.to_thread(
            check_answer, answer, shown, exchanges, f"{prompt.label} {self._model.name}"
        )
        return _choose_record(checked, rules_record)


def shorten_turns(turns: Sequence[TurnText], redactor: Redactor) -> list[TurnText]:
    """The turns as they are shown to a model: redacted, long ones without their middle.

    Together they have at most about `MAX_SUBTOPIC_CHARS` characters.
    """
    redacted = [replace(turn, content=redactor.redact(turn.content).text) for turn in turns]
    limit = MAX_TURN_CHARS
    while True:
        limits = {"tool": min(limit, MAX_TOOL_CHARS)}
        shown = [
            replace(turn, content=_cut_middle(turn.content, limits.get(turn.role, limit)))
            for turn in redacted
        ]
        size = sum(len(turn.content) for turn in shown)
        if size <= MAX_SUBTOPIC_CHARS or limit <= MIN_TURN_CHARS:
            return shown
        limit //= 2


def _cut_middle(text: str, limit: int) -> str:
    """The beginning and the end of a text: a message ends with what sums it up."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]} […] {text[-half:]}"


_Subtopic: TypeAlias = tuple[Sequence[Exchange], DecisionRecord | None]


def _read_by_rules(topic: TopicSegment) -> tuple[list[_Subtopic], list[RecordStatement]]:
    """The subtopics of a topic, each with the record that rules make of it, and what is a memory of
    its own by rules."""
    stated = annotate_exchanges(topic)
    is_work = any(turn.role == "tool" for turn in topic.turns)
    subtopics: list[_Subtopic] = [
        ([item.exchange for item in subtopic], build_record(subtopic, is_work))
        for subtopic in split_subtopics(stated)
    ]
    return subtopics, [s for item in stated for s in item.statements if s.is_own_memory]


def _choose_record(checked: CheckedAnswer, rules_record: DecisionRecord | None) -> SubtopicResult:
    """The model's record, unless it says less than that of the rules."""
    record = checked.record
    if record and (_is_decision(record) or not _is_decision(rules_record)):
        return SubtopicResult(record, "model", checked)
    problem = "its record decides nothing" if record else "its record is empty"
    if checked.dropped:
        problem = "the turns do not support its record"
    return SubtopicResult(
        rules_record,
        "unsupported" if checked.dropped else "empty",
        checked,
        degraded=f"llm: {problem}" if rules_record else None,
    )


def _is_decision(record: DecisionRecord | None) -> bool:
    return record is not None and any(s.is_decided for s in record.statements)
