"""Finds which memories a turn corrects, by rules and by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from pydantic import BaseModel, Field

from reverie.domain.access.principals import Principal
from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import KIND_POLICIES, Kind
from reverie.domain.core.memory import Memory, NewMemory, hash_content
from reverie.domain.extraction.content_checks import (
    compute_word_overlap,
    contains_instructions,
    is_grounded,
)
from reverie.domain.extraction.user_corrections import (
    apply_correction,
    correction_applies,
    find_corrections,
    may_contain_correction,
)
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.index_terms import index_text, memory_index_text
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import UsageTally
from reverie.inference.llm_prompts import fence_items, get_prompt
from reverie.store.sessions.sessions import SessionRecord

CORRECTABLE_KINDS = (Kind.PREFERENCE, Kind.CONVENTION, Kind.DECISION)
"""Kinds of memories that contain instructions, and so can be revoked."""

MAX_CORRECTED = 3
"""The most memories that one correction revokes; if more match, it applies to none."""

MAX_SHOWN = 24
MAX_SEARCH_CHARS = 2_000
MODEL_TIMEOUT = 15.0
MIN_CONFIDENCE = 0.9


@dataclass(frozen=True)
class MemoryCorrection:
    """A memory that replaces `old` or is new, the user's statement, and the rule or model that
    found it.
    """

    old: Memory | None
    content: str
    statement: str
    produced_by: str = ""


class _CorrectionAnswer(BaseModel):
    said: int
    memory: int | None = None
    content: str = Field(min_length=8, max_length=600)
    old: str = Field(max_length=200)
    new: str = Field(max_length=200)


class CorrectionsAnswer(BaseModel):
    """The corrections that a model found."""

    corrections: list[_CorrectionAnswer] = Field(max_length=10)


def may_correct_memories(texts: Sequence[str], model: LanguageModel | None) -> bool:
    """Whether a turn is worth a look: rules find a correction, or a model might."""
    return any(
        find_corrections(text) or (model is not None and may_contain_correction(text))
        for text in texts
    )


def build_search_words(texts: Sequence[str], model: LanguageModel | None) -> str:
    """Builds the search words: those of the rejected items, and for a model those of the whole
    text.
    """
    outdated = [correction.old for text in texts for correction in find_corrections(text)]
    return index_text(" ".join([*outdated, *(texts if model else ())])[:MAX_SEARCH_CHARS])


def find_changes_by_rules(
    texts: Sequence[str], memories: Sequence[Memory]
) -> list[MemoryCorrection]:
    """Finds changes by rules.

    A correction that matches no memory becomes a new preference only if it is meant to last.
    """
    changes: list[MemoryCorrection] = []
    for correction in [item for text in texts for item in find_corrections(text)]:
        matches = [memory for memory in memories if correction_applies(correction, memory.content)]
        if 0 < len(matches) <= MAX_CORRECTED:
            changes += [
                MemoryCorrection(
                    memory, apply_correction(correction, memory.content), correction.sentence
                )
                for memory in matches
            ]
        elif not matches and correction.is_lasting:
            changes.append(MemoryCorrection(None, correction.sentence, correction.sentence))
    return _dedupe_changes(changes)


async def find_changes_by_model(
    model: LanguageModel,
    principal: Principal,
    redactor: Redactor,
    texts: Sequence[str],
    memories: Sequence[Memory],
) -> list[MemoryCorrection]:
    """Finds changes with the model and checks them against the text.

    Raises `LanguageModelError`.
    """
    joined_texts = "\n".join(texts)
    # The surest comes first among equals.
    candidates = sorted(
        memories, key=lambda memory: -compute_word_overlap(memory.content, joined_texts)
    )[:MAX_SHOWN]
    items = [("said", text) for text in texts] + [("memory", item.content) for item in candidates]
    text = fence_items([(label, redactor.redact(text[:4_000]).text) for label, text in items])
    task = get_prompt("adjust")
    answer = await model.ask(
        principal.tenant, task, text, CorrectionsAnswer, UsageTally(principal), MODEL_TIMEOUT
    )
    produced_by = f"{task.label} {model.name}"
    changes = [_build_change(item, texts, candidates, produced_by) for item in answer.corrections]
    return _dedupe_changes([item for item in changes if item is not None])


def _build_change(
    answer: _CorrectionAnswer, texts: Sequence[str], candidates: Sequence[Memory], produced_by: str
) -> MemoryCorrection | None:
    """Builds the change, if the text contains its sentence and it names what it revokes."""
    index = (answer.memory or 0) - len(texts) - 1
    if not 1 <= answer.said <= len(texts) or (
        answer.memory is not None and not 0 <= index < len(candidates)
    ):
        return None
    sentence = texts[answer.said - 1]
    old = candidates[index] if answer.memory is not None else None
    evidence = f"{sentence}\n{old.content if old else ''}"
    content = " ".join(answer.content.split())
    new_name = answer.new.strip().lower()
    if (
        contains_instructions(content)
        or not is_grounded(content, evidence)
        or not new_name
        or new_name not in sentence.lower()
    ):
        return None
    return MemoryCorrection(old, content, sentence[:400], produced_by)


def _dedupe_changes(changes: Sequence[MemoryCorrection]) -> list[MemoryCorrection]:
    """Each memory corrected once, the first time."""
    by_target: dict[UUID | str, MemoryCorrection] = {}
    for change in changes:
        by_target.setdefault(change.old.id if change.old else change.content, change)
    return list(by_target.values())


def merge_changes(
    model_changes: Sequence[MemoryCorrection], rule_changes: Sequence[MemoryCorrection]
) -> list[MemoryCorrection]:
    """Merges the changes; the rules add those of other memories.

    New preferences of the rules count only if the model found nothing.
    """
    return _dedupe_changes(
        [*model_changes, *(change for change in rule_changes if change.old or not model_changes)]
    )


def build_corrected_memory(
    change: MemoryCorrection, principal: Principal, redactor: Redactor, session: SessionRecord
) -> NewMemory:
    """The memory that takes the place of the old one: in its scope, as pinned, and sure."""
    old = change.old
    scope = old.scope if old else session.scope
    redactor = redactor.within(scope)
    content = redactor.redact(change.content).text
    statement = redactor.redact(change.statement).text
    kind = old.kind if old else Kind.PREFERENCE
    tags = old.tags if old else ()
    provenance = {"generated_by": change.produced_by} if change.produced_by else {}
    return NewMemory(
        id=new_id(),
        scope=scope,
        kind=kind,
        content=content,
        content_hash=hash_content(content),
        words=memory_index_text(old.key if old else None, content, tags, {}),
        tier=KIND_POLICIES[kind].tier,
        confidence=max(old.confidence if old else 0.0, MIN_CONFIDENCE),
        tags=tuple(tags),
        pinned=old.pinned if old else False,
        session=session.id,
        agent=principal.agent or session.agent,
        source="correction",
        metadata={"quote": statement, **provenance},
    )
