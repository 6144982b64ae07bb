"""Maintenance steps that derive lessons with a language model and propose vault entries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from pydantic import BaseModel, Field

from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import KIND_POLICIES, EdgeKind, Kind
from reverie.domain.core.memory import USE_VAULT_HINT, NewEdge, NewMemory, hash_content, is_state
from reverie.domain.extraction.content_checks import contains_instructions, is_grounded
from reverie.domain.redaction.redactor import redact
from reverie.domain.text.index_terms import index_text
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import LanguageModelError, UsageTally
from reverie.inference.llm_prompts import TaskPrompt, fence_items, get_prompt
from reverie.store.maintenance.items import ReflectionInput
from reverie_services.dream.dependencies import MaintenanceDependencies
from reverie_services.dream.maintenance.progress import MaintenancePage, MaintenanceProgress

MIN_NEW_MEMORIES = 10
"""New memories of a scope since it was last reflected on that make it worth another look."""

MAX_SHOWN = 60
PAGE_SIZE = 500
MAX_CONTENT_LENGTH = 600
INSIGHT_CONFIDENCE = 0.6
"""The confidence of an insight: lower than that of a statement."""


class Insight(BaseModel):
    """A conclusion from several memories, given by their numbers."""

    content: str = Field(max_length=4_000)
    memories: list[int] = Field(max_length=MAX_SHOWN)


class Insights(BaseModel):
    """The insights that the model found, the clearest first."""

    insights: list[Insight] = Field(max_length=20)


async def propose_vault_entries(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, after_id: UUID
) -> MaintenancePage:
    """Tells of counters, blobs and caches that are kept as memories: they belong in the vault."""
    memories = await deps.maintenance.list_state_memories(progress.scope, after_id, PAGE_SIZE)
    for memory in memories:
        if is_state(memory.content):
            progress.record_decision("proposed", memory.id, USE_VAULT_HINT, memory.kind)
    if after_id.int == 0:
        for frequent_key in await deps.maintenance.list_frequent_keys(progress.scope, PAGE_SIZE):
            reason = (
                f"the key {frequent_key.key} was written {frequent_key.versions} "
                f"times: {USE_VAULT_HINT}"
            )
            progress.record_decision("proposed", frequent_key.id, redact(reason).text)
    return MaintenancePage.of([memory.id for memory in memories], PAGE_SIZE)


async def reflect_on_scope(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, _: UUID
) -> MaintenancePage:
    """Looks for insights in the scope with most that is new, one scope at a time."""
    model = deps.language_model
    if model is None:
        return MaintenancePage(0, None)
    scope = await deps.maintenance.find_scope_to_reflect(progress.scope, MIN_NEW_MEMORIES)
    if scope is None:
        return MaintenancePage(0, None)
    inputs = await deps.maintenance.load_reflection_input(progress.scope.tenant, scope, MAX_SHOWN)
    try:
        await _derive_insights(deps, progress, model, scope, inputs)
    except LanguageModelError as error:
        progress.record.degraded.add(f"llm: {error}")
        return MaintenancePage(len(inputs), None)
    await deps.maintenance.mark_reflected(
        progress.scope.tenant, scope, max(item.id for item in inputs)
    )
    return MaintenancePage(len(inputs), inputs[0].id)


async def _derive_insights(
    deps: MaintenanceDependencies,
    progress: MaintenanceProgress,
    model: LanguageModel,
    scope: str,
    inputs: Sequence[ReflectionInput],
) -> None:
    task, tally = get_prompt("reflect"), UsageTally()
    redactor = (await deps.load_redactor(progress.scope.tenant)).within(scope)
    text = await asyncio.to_thread(
        lambda: fence_items(
            [(item.kind, redactor.redact(item.content[:2_000]).text) for item in inputs]
        )
    )
    try:
        answer = await model.ask(progress.scope.tenant, task, text, Insights, tally)
    finally:
        progress.record.add_llm_usage(tally.calls, tally.total_tokens, task.label)
    drafts = [_build_lesson(item, inputs, scope, task, model.name) for item in answer.insights]
    lessons = [redactor.redact_memory(item) for item in drafts if item is not None]
    for item in lessons:
        if await deps.maintenance.write_memory(progress.scope, item):
            reason = f"{len(item.edges)} memories show it"
            progress.record_decision("derived", item.id, reason, item.kind.value)


def _build_lesson(
    insight: Insight, inputs: Sequence[ReflectionInput], scope: str, task: TaskPrompt, model: str
) -> NewMemory | None:
    """Builds the lesson, marked as derived, with its evidence; None if the evidence is
    insufficient.
    """
    numbers = sorted(set(insight.memories))
    if len(numbers) < 2 or not all(1 <= n <= len(inputs) for n in numbers):
        return None
    evidence = [inputs[n - 1] for n in numbers]
    content = " ".join(insight.content.split())
    if len(content) > MAX_CONTENT_LENGTH or content in {item.content for item in inputs}:
        return None
    if contains_instructions(content) or not is_grounded(
        content, "\n".join(s.content for s in evidence)
    ):
        return None
    return NewMemory(
        id=new_id(),
        scope=scope,
        kind=Kind.LESSON,
        content=content,
        content_hash=hash_content(content),
        words=index_text(content),
        tier=KIND_POLICIES[Kind.LESSON].tier,
        confidence=INSIGHT_CONFIDENCE,
        source="reflection",
        edges=tuple(
            NewEdge(item.id, EdgeKind.CAUSED_BY, 0.5, {"evidence": True}) for item in evidence
        ),
        metadata={
            "derived": True,
            "evidence": [str(item.id) for item in evidence],
            "generated_by": f"{task.label} {model}",
        },
    )
