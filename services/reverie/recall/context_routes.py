"""The block at session start over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import Name, Text
from reverie.contracts.context import (
    BudgetsBody,
    ContextAnswer,
    ContextEntry,
    ContextSection,
    LeftOut,
    Warning,
)
from reverie.domain.access import Principal
from reverie.domain.briefing import Briefing, title
from reverie.domain.budgets import Budgets
from reverie.domain.context import Block, Entry, render
from reverie.domain.errors import Invalid
from reverie.domain.fields import naming
from reverie.domain.open_files import MOST_FILES
from reverie.domain.scopes import parse_scope, project_of, slug
from reverie.recall.away import unless_away
from reverie.recall.parts import Parts
from reverie.recall.seen import seen_from, seen_in, session_of
from reverie.runtime.body import Query
from reverie.runtime.calls import Call, Reply
from reverie.runtime.routes import Route
from reverie.store.sessions import Session

OpenFile = Annotated[str, Field(min_length=1, max_length=1024)]


class ContextQuery(Query):
    """Whose context: a session's, a project's, or all that the key may read.

    `files`: what the agent has open. `budget_tokens`: another total, in the same proportions.
    """

    session: UUID | None = None
    project: Name | None = None
    scope: list[Text] | None = None
    files: list[OpenFile] | None = Field(default=None, max_length=MOST_FILES)
    budget_tokens: Annotated[int, Field(ge=50, le=100_000)] | None = None
    format: Literal["json", "markdown"] = "json"


def routes(parts: Parts) -> list[Route]:
    """The table of the context."""
    doors = Doors(parts)
    return [
        Route("GET", "/v1/context", doors.context, query=ContextQuery, answer=ContextAnswer,
              gives={"text/markdown": "## What is known of shop\n"},
              summary="What an agent should know at session start"),
    ]  # fmt: skip


class Doors:
    """The handler, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def context(self, call: Call[None, ContextQuery]) -> Reply:
        """`GET /v1/context`."""
        who, query = call.principal, call.query
        named = _named(who, query)
        session, missing = await session_of(self._parts, who, query.session)
        scopes = [] if missing else seen_in(who, named, session)
        project = _project(who, query, session)
        files = query.files or []
        reading = self._parts.briefings.read(who, scopes, project, files)
        found = await unless_away(reading, self._parts.settings.seconds)
        briefing = found or Briefing()
        degraded = missing if found else [*missing, "store"]
        self._parts.meters.answered("context", degraded)
        budgets = briefing.budgets if files else briefing.budgets.without_files()
        if query.budget_tokens is not None:
            budgets = budgets.within(query.budget_tokens)
        lend = query.budget_tokens is not None
        block = render(briefing, budgets, self._parts.model.counter.count, lend)
        if query.format == "markdown":
            headers = {"Content-Type": "text/markdown; charset=utf-8"}
            if degraded:
                headers["Reverie-Degraded"] = ", ".join(degraded)
            return Reply(body=block.markdown.encode(), headers=headers)
        answer = _answer(block, briefing, budgets)
        return Reply(body=answer.model_copy(update={"degraded": degraded}))


def _named(who: Principal, query: ContextQuery) -> list[str] | None:
    """The scopes that the parameters name; None where they name none or a session."""
    given = [name for name in ("project", "scope", "session") if getattr(query, name)]
    if len(given) > 1:
        raise Invalid(given[-1], "give a project, scopes or a session, not several of them")
    if query.project:
        return seen_from(who, query.project)
    if query.scope is None:
        return None
    parsed = []
    for place, scope in enumerate(query.scope):
        with naming(f"scope.{place}"):
            parsed.append(parse_scope(scope))
    return parsed


def _project(who: Principal, query: ContextQuery, session: Session | None) -> str | None:
    """The one project that is spoken of: its budgets hold, and its files are meant."""
    if query.project:
        return slug(query.project)
    if session is not None:
        return project_of(session.scope)
    named = {project_of(parse_scope(scope)) for scope in query.scope or ()} - {None}
    if query.scope is None:
        return who.project
    return named.pop() if len(named) == 1 else None


def _answer(block: Block, briefing: Briefing, budgets: Budgets) -> ContextAnswer:
    return ContextAnswer(
        markdown=block.markdown,
        tokens=block.tokens,
        memories=list(block.shown),
        sections=_sections(block),
        budgets=BudgetsBody(**vars(budgets), total=budgets.total),
        omitted=[
            LeftOut(
                id=one.memory.id,
                title=title(one.memory),
                kind=one.memory.kind.value,
                section=one.place.heading,
                part=one.place.parts[0].value,
                reason=one.reason,
            )
            for one in block.omitted
        ],
        more=briefing.more,
        warnings=[Warning(**vars(one), message=one.message) for one in block.warnings],
        summaries=dict(briefing.summaries),
    )


def _sections(block: Block) -> list[ContextSection]:
    headings = dict.fromkeys(entry.place for entry in block.entries)
    return [
        ContextSection(
            name=place.heading,
            part=place.parts[0].value,
            tokens=sum(entry.tokens for entry in block.entries if entry.place == place),
            entries=[_entry(entry) for entry in block.entries if entry.place == place],
        )
        for place in headings
    ]


def _entry(entry: Entry) -> ContextEntry:
    memory = entry.memory
    return ContextEntry(
        id=memory.id,
        kind=memory.kind.value,
        scope=memory.scope,
        key=memory.key,
        text=entry.text,
        tokens=entry.tokens,
        pinned=memory.pinned,
        stale_grade=memory.stale_grade,
        stale_reason=memory.stale_reason,
        why=entry.why,
    )
