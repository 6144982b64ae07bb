"""Maintenance step that reviews stale memories with a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from reverie.domain.access.principals import KeyRole, Principal
from reverie.domain.core.errors import Conflict, PreconditionFailed
from reverie.domain.extraction.content_checks import contains_instructions, is_grounded
from reverie.domain.redaction.redactor import Redactor
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import LanguageModelError, UsageTally
from reverie.inference.llm_prompts import fence_items, get_prompt
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.staleness.reviews import ReviewCandidate, ReviewVerdict, StalenessReason
from reverie_services.dream.dependencies import MaintenanceDependencies
from reverie_services.dream.maintenance.progress import MaintenancePage, MaintenanceProgress

PAGE_SIZE = 10
MAX_REASONS = 8
MAX_CHANGE_CHARS = 6_000
"""Characters of one change that are shown."""
MAX_CONTENT_LENGTH, MAX_REASON_LENGTH = 2_000, 400


class ReviewAnswer(BaseModel):
    """The effect of the changes on a memory; `content` is its new text, if that changed."""

    verdict: Literal["holds", "changed", "gone", "unsure"]
    content: str | None = Field(None, max_length=4_000)
    why: str = Field("", max_length=2_000)


async def review_stale_memories(
    deps: MaintenanceDependencies, progress: MaintenanceProgress, after_id: UUID
) -> MaintenancePage:
    """Reviews each memory in doubt; applies the result if that is enabled."""
    model = deps.language_model
    if model is None:
        return MaintenancePage(0, None)
    due = await deps.reviews.list_due(progress.scope, after_id, PAGE_SIZE)
    for candidate in due:
        try:
            verdict = await _review_memory(deps, progress, model, candidate)
        except LanguageModelError as error:
            progress.record.degraded.add(f"llm: {error}")
            return MaintenancePage(len(due), None)
        review_id = await deps.reviews.put(progress.scope.tenant, candidate, verdict)
        progress.record_decision(
            "reviewed", candidate.id, f"{verdict.verdict}: {verdict.reason}", candidate.kind
        )
        if deps.settings.review_mode == "apply" and verdict.verdict != "unsure":
            # The memory was changed concurrently: it is reviewed again.
            with suppress(Conflict, PreconditionFailed):
                scope, patterns = progress.scope, tuple(progress.scope.scopes)
                reviewer = Principal(
                    scope.tenant, scope.tenant_name, "review", KeyRole.ADMIN, patterns, patterns
                )
                _, events = await deps.reviews.accept(reviewer, review_id, trace_headers())
                await deps.publisher.publish(scope.tenant, events)
    return MaintenancePage.of([candidate.id for candidate in due], PAGE_SIZE)


async def _review_memory(
    deps: MaintenanceDependencies,
    progress: MaintenanceProgress,
    model: LanguageModel,
    candidate: ReviewCandidate,
) -> ReviewVerdict:
    tenant, task, tally = progress.scope.tenant, get_prompt("review"), UsageTally()
    reasons = await deps.reviews.list_reasons(tenant, candidate.id, MAX_REASONS)
    redactor = await deps.load_redactor(tenant)
    shown_items = await asyncio.to_thread(_build_prompt_items, candidate, reasons, redactor)
    try:
        answer = await model.ask(tenant, task, fence_items(shown_items), ReviewAnswer, tally)
    finally:
        progress.record.add_llm_usage(tally.calls, tally.total_tokens, task.label)
    shown_text = "\n".join(text for _, text in shown_items)
    return _check_answer(answer, candidate, shown_text, f"{task.label} {model.name}", redactor)


def _build_prompt_items(
    candidate: ReviewCandidate, reasons: Sequence[StalenessReason], redactor: Redactor
) -> list[tuple[str, str]]:
    """The memory, then the changes, without secrets."""
    items = [
        (candidate.kind, candidate.content),
        *((f"commit {r.commit[:10]}", _render_change(r)) for r in reasons),
    ]
    return [(label, redactor.redact(text).text) for label, text in items]


def _render_change(reason: StalenessReason) -> str:
    """Renders a change: its lines if the publisher sent them, else their names."""
    lines = [f"{reason.subject}", f"{reason.change} {reason.path} ({reason.grade})"]
    for hunk in reason.hunks or ():
        if isinstance(hunk, dict):
            names = " ".join((*hunk.get("symbols", ()), *hunk.get("identifiers", ())))
            lines += filter(None, (hunk.get("header"), hunk.get("text") or names))
    return "\n".join(lines)[:MAX_CHANGE_CHARS]


def _check_answer(
    answer: ReviewAnswer,
    candidate: ReviewCandidate,
    shown_text: str,
    generated_by: str,
    redactor: Redactor,
) -> ReviewVerdict:
    """Returns the verdict without secrets; `unsure` if nothing supports its new text."""
    content = redactor.redact(" ".join((answer.content or "").split())).text
    explanation = (
        redactor.redact(" ".join(answer.why.split())).text[:MAX_REASON_LENGTH]
        or "it gave no reason"
    )
    if answer.verdict != "changed":
        return ReviewVerdict(answer.verdict, None, explanation, generated_by)
    is_valid = 0 < len(content) <= MAX_CONTENT_LENGTH and not contains_instructions(content)
    if not is_valid or content == candidate.content or not is_grounded(content, shown_text):
        return ReviewVerdict("unsure", None, "its new text says what nothing shows", generated_by)
    return ReviewVerdict("changed", content, explanation, generated_by)
