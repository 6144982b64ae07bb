"""Looking over memories that changes put in doubt, beside what changed, with a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from reverie.bus.relay import publish_now
from reverie.domain.access import Principal, Role
from reverie.domain.errors import Conflict, Moved
from reverie.domain.grounding import gives_orders, is_grounded
from reverie.domain.known_secrets import knowing
from reverie.domain.redaction import redact
from reverie.dream.parts import Parts
from reverie.dream.work import Page, Work
from reverie.inference.asking import Tally, Unanswered
from reverie.inference.fencing import fenced
from reverie.inference.language import LanguageModel
from reverie.inference.prompts import prompt
from reverie.runtime.telemetry import inject_headers
from reverie.store.reviews import Doubted, Reason, Said
from reverie.store.tending import Garden

PAGE = 10
REASONS = 8
SHOWN = 6_000
"""Characters of one change that are shown."""
LONGEST, WHY = 2_000, 400


class Verdict(BaseModel):
    """What the changes did to a memory; `content` is how it should read, where it changed."""

    verdict: Literal["holds", "changed", "gone", "unsure"]
    content: str | None = Field(None, max_length=4_000)
    why: str = Field("", max_length=2_000)


async def review(parts: Parts, work: Work, above: UUID) -> Page:
    """Says of each memory in doubt whether it holds; carries it out where that is set."""
    model = parts.language
    if model is None:
        return Page(0, None)
    due = await parts.reviews.due(work.garden, above, PAGE)
    for one in due:
        try:
            said = await _looked_over(parts, work, model, one)
        except Unanswered as error:
            work.record.degraded.add(f"llm: {error}")
            return Page(len(due), None)
        made = await parts.reviews.put(work.garden.tenant, one, said)
        work.did("reviewed", one.id, f"{said.verdict}: {said.why}", one.kind)
        if parts.settings.review == "apply" and said.verdict != "unsure":
            # Who changed the memory meanwhile was first: it is looked over anew.
            with suppress(Conflict, Moved):
                await _carry_out(parts, work.garden, made)
    return Page(len(due), due[-1].id if len(due) == PAGE else None)


async def _looked_over(parts: Parts, work: Work, model: LanguageModel, one: Doubted) -> Said:
    tenant, task, tally = work.garden.tenant, prompt("review"), Tally()
    reasons = await parts.reviews.reasons(tenant, one.id, REASONS)
    with knowing(await parts.known_of(tenant), lambda _: False):
        shown = await asyncio.to_thread(_shown, one, reasons)
        try:
            told = await model.ask(tenant, task, fenced(shown), Verdict, tally)
        finally:
            work.record.asked(tally.calls, tally.tokens, task.label)
        return _held(told, one, "\n".join(text for _, text in shown), f"{task.label} {model.name}")


def _shown(one: Doubted, reasons: Sequence[Reason]) -> list[tuple[str, str]]:
    """The memory, then the changes, without secrets."""
    items = [(one.kind, one.content), *((f"commit {r.commit[:10]}", _told(r)) for r in reasons)]
    return [(label, redact(text).text) for label, text in items]


def _told(reason: Reason) -> str:
    """A change as it is shown: its lines where the publisher sent them, else their names."""
    lines = [f"{reason.subject}", f"{reason.change} {reason.path} ({reason.grade})"]
    for hunk in reason.hunks or ():
        if isinstance(hunk, dict):
            named = " ".join((*hunk.get("symbols", ()), *hunk.get("words", ())))
            lines += filter(None, (hunk.get("header"), hunk.get("text") or named))
    return "\n".join(lines)[:SHOWN]


def _held(told: Verdict, one: Doubted, shown: str, made_by: str) -> Said:
    """The verdict, without secrets; unsure where its new text says what nothing shows."""
    content = redact(" ".join((told.content or "").split())).text
    why = redact(" ".join(told.why.split())).text[:WHY] or "it gave no reason"
    if told.verdict != "changed":
        return Said(told.verdict, None, why, made_by)
    sound = 0 < len(content) <= LONGEST and not gives_orders(content)
    if not sound or content == one.content or not is_grounded(content, shown):
        return Said("unsure", None, "its new text says what nothing shows", made_by)
    return Said("changed", content, why, made_by)


async def _carry_out(parts: Parts, garden: Garden, made: UUID) -> None:
    _, events = await parts.reviews.accept(_as_admin(garden), made, inject_headers())
    await publish_now(parts.bus, parts.outbox, garden.tenant, events)


def _as_admin(garden: Garden) -> Principal:
    scopes = tuple(garden.scopes)
    return Principal(garden.tenant, garden.tenant_name, "review", Role.ADMIN, scopes, scopes)
