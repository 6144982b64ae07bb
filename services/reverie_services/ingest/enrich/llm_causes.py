"""Finds causes and effects with a language model, checked against the memories' text."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.wording import discourse_markers
from reverie.domain.graph.causal_inference import MAX_EVIDENCE, CausalLink, CauseCandidate
from reverie.domain.redaction.redactor import Redactor
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_prompts import fence_items, get_prompt

CAUSAL_KINDS = frozenset({Kind.BUG, Kind.DECISION, Kind.LESSON, Kind.CONVENTION, Kind.SPEC})
MAX_SHOWN = 12
MODEL_TIMEOUT = 20.0
CAUSE_CONFIDENCE = 0.6
MIN_EVIDENCE = 12
LLM_RULE_PREFIX = "llm"
"""The prefix of the rule names of causes that a model found."""


class _CausePairAnswer(BaseModel):
    cause: int
    effect: int
    evidence: str = Field(max_length=2_000)


class CausePairsAnswer(BaseModel):
    """Causes and effects by their numbers."""

    pairs: list[_CausePairAnswer] = Field(max_length=40)


def may_have_unfound_causes(
    memory: CauseCandidate, others: Sequence[CauseCandidate], rule_causes: Sequence[CausalLink]
) -> bool:
    """Whether a memory gives a reason that rules made nothing of."""
    reason_match = discourse_markers.CAUSE.search(memory.content) or discourse_markers.FIX.search(
        memory.content
    )
    return (
        bool(others)
        and not rule_causes
        and Kind(memory.kind) in CAUSAL_KINDS
        and reason_match is not None
    )


async def find_causes(
    model: LanguageModel,
    tenant: int,
    redactor: Redactor,
    memory: CauseCandidate,
    others: Sequence[CauseCandidate],
) -> list[CausalLink]:
    """The causes and effects of a memory that a model found. Raises `LanguageModelError`."""
    candidates = [memory, *others[:MAX_SHOWN]]
    text = fence_items(
        [(item.kind, redactor.redact(item.content[:2_000]).text) for item in candidates]
    )
    task = get_prompt("causes")
    answer = await model.ask(tenant, task, text, CausePairsAnswer, time_limit=MODEL_TIMEOUT)
    rule = f"{LLM_RULE_PREFIX} {task.label} {model.name}"
    pairs = {(item.cause, item.effect): item for item in answer.pairs}
    causes = [_build_cause(item, candidates, rule) for item in pairs.values()]
    return [item for item in causes if item is not None]


def _build_cause(
    pair: _CausePairAnswer, candidates: Sequence[CauseCandidate], rule: str
) -> CausalLink | None:
    """Builds the cause, if one text contains the sentence and the first item is one of the two."""
    ends = {pair.cause, pair.effect}
    if 1 not in ends or len(ends) < 2 or not all(1 <= n <= len(candidates) for n in ends):
        return None
    cause, effect = candidates[pair.cause - 1], candidates[pair.effect - 1]
    sentence = _normalize(pair.evidence)
    if len(sentence) < MIN_EVIDENCE or not any(
        sentence in _normalize(item.content) for item in (cause, effect)
    ):
        return None
    return CausalLink(cause.id, effect.id, CAUSE_CONFIDENCE, pair.evidence[:MAX_EVIDENCE], rule)


def _normalize(text: str) -> str:
    return " ".join(text.split()).lower().strip(" .。")
