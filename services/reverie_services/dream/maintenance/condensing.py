"""Maintenance step that summarises long memories with a language model."""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, Field

from reverie.domain.extraction.content_checks import contains_instructions, is_grounded
from reverie.domain.text.markdown import shorten, split_sentences
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import LanguageModelError, UsageTally
from reverie.inference.llm_prompts import fence_items, get_prompt
from reverie.runtime.observability.tracing import trace_headers
from reverie_services.dream.dependencies import MaintenanceDependencies
from reverie_services.dream.maintenance.progress import MaintenancePage, MaintenanceProgress

PAGE_SIZE = 5
MIN_CHARS = 1_500
"""A memory that is as long is worth a summary."""
MAX_SHOWN_CHARS = 16_000
MIN_SUMMARY_CHARS, MAX_SUMMARY_CHARS = 30, 600
RULES_SENTENCES = 3


class CondensedMemory(BaseModel):
    """The summary of a memory."""

    summary: str = Field(max_length=8_000)


async def condense_long_memories(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, after_id: UUID
) -> MaintenancePage:
    """Gives long memories without a summary one; without a model they stay as they are.

    What the model says is kept only if the memory says it. Otherwise its first sentences are the
    summary, so that it is not asked for again.
    """
    model, scope = deps.language_model, progress.scope
    if model is None:
        return MaintenancePage(0, None)
    memories = await deps.maintenance.list_long_memories(scope, after_id, MIN_CHARS, PAGE_SIZE)
    redactor = await deps.load_redactor(scope.tenant)
    for memory in memories:
        text = redactor.within(memory.scope).redact(memory.content).text
        try:
            summary = await _ask(progress, model, text[:MAX_SHOWN_CHARS])
        except LanguageModelError as error:
            progress.record.degraded.add(f"llm: {error}")
            return MaintenancePage(len(memories), None)
        problem = find_problem(summary, text)
        chosen = summary if problem is None else summarise_by_rules(text)
        if await deps.maintenance.put_summary(
            scope, memory, redactor.within(memory.scope).redact(chosen).text, trace_headers()
        ):
            reason = f"by {model.name}" if problem is None else f"by rules: {problem}"
            progress.record_decision("summarized", memory.id, reason, memory.kind)
    return MaintenancePage.of([memory.id for memory in memories], PAGE_SIZE)


async def _ask(progress: MaintenanceProgress, model: LanguageModel, text: str) -> str:
    prompt, tally = get_prompt("condense"), UsageTally()
    try:
        answer = await model.ask(
            progress.scope.tenant, prompt, fence_items([("memory", text)]), CondensedMemory, tally
        )
    finally:
        progress.record.add_llm_usage(tally.calls, tally.total_tokens, prompt.label)
    return " ".join(answer.summary.split())


def find_problem(summary: str, content: str) -> str | None:
    """Why a summary is not kept; None if it is."""
    if not MIN_SUMMARY_CHARS <= len(summary) <= MAX_SUMMARY_CHARS:
        return "the summary is too short or too long"
    if contains_instructions(summary):
        return "the summary speaks to a model"
    # Each sentence by itself: a true one must not carry a made-up one.
    if not all(is_grounded(sentence, content) for sentence in split_sentences(summary)):
        return "the memory does not say it"
    return None


def summarise_by_rules(content: str) -> str:
    """The first sentences of a text."""
    return shorten(" ".join(split_sentences(content)[:RULES_SENTENCES]), MAX_SUMMARY_CHARS)
