"""What led to what, by a language model: only what a sentence of one of the two says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pydantic import BaseModel, Field

from reverie.domain import cues
from reverie.domain.causes import MAX_EVIDENCE, Cause, Told
from reverie.domain.kinds import Kind
from reverie.domain.redaction import redact
from reverie.inference.asking import Tally, Unanswered
from reverie.inference.fencing import fenced
from reverie.inference.language import LanguageModel
from reverie.inference.prompts import prompt

KINDS = frozenset({Kind.BUG, Kind.DECISION, Kind.LESSON, Kind.CONVENTION, Kind.SPEC})
SHOWN = 12
SECONDS = 20.0
SURE = 0.6
MIN_EVIDENCE = 12
LLM = "llm"
"""How the rules of causes begin that a model told."""


class _Pair(BaseModel):
    cause: int
    effect: int
    evidence: str = Field(max_length=2_000)


class Pairs(BaseModel):
    """Causes and effects by their numbers."""

    pairs: list[_Pair] = Field(max_length=40)


def is_worth_asking(memory: Told, others: Sequence[Told], known: Sequence[Cause]) -> bool:
    """Whether a memory gives a reason that rules made nothing of."""
    gives = cues.CAUSE.search(memory.content) or cues.FIX.search(memory.content)
    return bool(others) and not known and Kind(memory.kind) in KINDS and gives is not None


async def causes_told(
    model: LanguageModel, tenant: int, memory: Told, others: Sequence[Told]
) -> list[Cause]:
    """The causes and effects of a memory that a model found. Raises `Unanswered`."""
    told = [memory, *others[:SHOWN]]
    text = fenced([(one.kind, redact(one.content[:2_000]).text) for one in told])
    task = prompt("causes")
    try:
        async with asyncio.timeout(SECONDS):
            answer = await model.ask(tenant, task, text, Pairs, Tally())
    except TimeoutError as error:
        raise Unanswered("it took too long") from error
    rule = f"{LLM} {task.label} {model.name}"
    found = {(one.cause, one.effect): one for one in answer.pairs}
    causes = [_cause(one, told, rule) for one in found.values()]
    return [one for one in causes if one is not None]


def _cause(pair: _Pair, told: Sequence[Told], rule: str) -> Cause | None:
    """The cause, where one of the two says the sentence and the first item is one of them."""
    ends = {pair.cause, pair.effect}
    if 1 not in ends or len(ends) < 2 or not all(1 <= n <= len(told) for n in ends):
        return None
    cause, effect = told[pair.cause - 1], told[pair.effect - 1]
    sentence = _plain(pair.evidence)
    if len(sentence) < MIN_EVIDENCE or not any(
        sentence in _plain(one.content) for one in (cause, effect)
    ):
        return None
    return Cause(cause.id, effect.id, SURE, pair.evidence[:MAX_EVIDENCE], rule)


def _plain(text: str) -> str:
    return " ".join(text.split()).lower().strip(" .。")
