"""Reflecting: what several memories show together, and what is kept as memory but is state."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from pydantic import BaseModel, Field

from reverie.domain.clean import without_secrets
from reverie.domain.edges import EdgeKind
from reverie.domain.grounding import gives_orders, is_grounded
from reverie.domain.ids import new_id
from reverie.domain.kinds import TREATMENT, Kind
from reverie.domain.known_secrets import knowing
from reverie.domain.memory import NewEdge, NewMemory, content_hash
from reverie.domain.redaction import redact
from reverie.domain.state import USE_VAULT, is_state
from reverie.domain.words import index_text
from reverie.dream.parts import Parts
from reverie.dream.work import Page, Work
from reverie.inference.asking import Tally, Unanswered
from reverie.inference.fencing import fenced
from reverie.inference.language import LanguageModel
from reverie.inference.prompts import Prompt, prompt
from reverie.store.tending import Ground

FRESH = 10
"""New memories of a scope since it was last reflected on that make it worth another look."""

SHOWN = 60
PAGE = 500
LONGEST = 600
SURE = 0.6
"""How sure an insight is: less than what was said."""


class Insight(BaseModel):
    """What several memories show, by their numbers."""

    content: str = Field(max_length=4_000)
    memories: list[int] = Field(max_length=SHOWN)


class Insights(BaseModel):
    """What was seen, the clearest first."""

    insights: list[Insight] = Field(max_length=20)


async def propose_vault(parts: Parts, work: Work, above: UUID) -> Page:
    """Tells of counters, blobs and caches that are kept as memories: they belong in the vault."""
    found = await parts.tending.stateful(work.garden, above, PAGE)
    for one in found:
        if is_state(one.content):
            work.did("proposed", one.id, USE_VAULT, one.kind)
    if above.int == 0:
        for busy in await parts.tending.busy(work.garden, PAGE):
            why = f"the key {busy.key} was written {busy.versions} times: {USE_VAULT}"
            work.did("proposed", busy.id, redact(why).text)
    return Page(len(found), found[-1].id if len(found) == PAGE else None)


async def reflect(parts: Parts, work: Work, _: UUID) -> Page:
    """Looks for insights in the scope with most that is new, one scope at a time."""
    model = parts.language
    if model is None:
        return Page(0, None)
    scope = await parts.tending.reflectable(work.garden, FRESH)
    if scope is None:
        return Page(0, None)
    ground = await parts.tending.ground(work.garden.tenant, scope, SHOWN)
    try:
        await _insights(parts, work, model, scope, ground)
    except Unanswered as error:
        work.record.degraded.add(f"llm: {error}")
        return Page(len(ground), None)
    await parts.tending.reflected(work.garden.tenant, scope, max(one.id for one in ground))
    return Page(len(ground), ground[0].id)


async def _insights(
    parts: Parts, work: Work, model: LanguageModel, scope: str, ground: Sequence[Ground]
) -> None:
    task, tally = prompt("reflect"), Tally()
    with knowing(await parts.known_of(work.garden.tenant), lambda _: False):
        text = await asyncio.to_thread(_as_data, ground)
        try:
            told = await model.ask(work.garden.tenant, task, text, Insights, tally)
        finally:
            work.record.asked(tally.calls, tally.tokens, task.label)
        made = [_memory(one, ground, scope, task, model.name) for one in told.insights]
        new = [without_secrets(one) for one in made if one is not None]
    for one in new:
        if await parts.tending.write(work.garden, one):
            why = f"{len(one.edges)} memories show it"
            work.did("derived", one.id, why, one.kind.value)


def _as_data(ground: Sequence[Ground]) -> str:
    return fenced([(one.kind, redact(one.content[:2_000]).text) for one in ground])


def _memory(
    told: Insight, ground: Sequence[Ground], scope: str, task: Prompt, model: str
) -> NewMemory | None:
    """The lesson, marked as derived, with its evidence; None where the evidence does not hold."""
    numbers = sorted(set(told.memories))
    if len(numbers) < 2 or not all(1 <= n <= len(ground) for n in numbers):
        return None
    shown = [ground[n - 1] for n in numbers]
    content = " ".join(told.content.split())
    if len(content) > LONGEST or content in {one.content for one in ground}:
        return None
    if gives_orders(content) or not is_grounded(content, "\n".join(s.content for s in shown)):
        return None
    return NewMemory(
        id=new_id(),
        scope=scope,
        kind=Kind.LESSON,
        content=content,
        content_hash=content_hash(content),
        words=index_text(content),
        tier=TREATMENT[Kind.LESSON].tier,
        confidence=SURE,
        source="reflection",
        edges=tuple(NewEdge(one.id, EdgeKind.CAUSED_BY, 0.5, {"evidence": True}) for one in shown),
        metadata={
            "derived": True,
            "evidence": [str(one.id) for one in shown],
            "made_by": f"{task.label} {model}",
        },
    )
