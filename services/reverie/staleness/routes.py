"""What staleness takes and answers over HTTP."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime

from reverie.bus.relay import publish_now
from reverie.contracts.base import Name, Text
from reverie.contracts.git import Evidence, GitAccepted, GitChange, StaleItem, StalePage
from reverie.contracts.views import memory_body
from reverie.domain.access import Principal
from reverie.domain.confidence import HalfLives
from reverie.domain.errors import Invalid
from reverie.domain.kinds import Kind
from reverie.domain.scopes import parse_scope, project_of, slug
from reverie.domain.telling import warning
from reverie.runtime.calls import Call
from reverie.runtime.paging import ById, PageQuery, cut_page
from reverie.runtime.routes import Route
from reverie.staleness.intake import take
from reverie.staleness.parts import Parts
from reverie.store.changes import Stale


class StaleQuery(PageQuery):
    """Filters of `GET /v1/stale`: a project with all in it, or one scope."""

    project: Name | None = None
    scope: Text | None = None


def routes(parts: Parts) -> list[Route]:
    """The table of staleness."""
    doors = Doors(parts)
    return [
        Route("POST", "/v1/git/changes", doors.change, GitChange, answer=GitAccepted, status=202,
              limit=parts.settings.git_limit, limit_setting="git_limit",
              summary="Say what a push changed"),
        Route("GET", "/v1/stale", doors.stale, query=StaleQuery, answer=StalePage,
              summary="Memories that may no longer be true, and why"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def change(self, call: Call[GitChange, None]) -> GitAccepted:
        """`POST /v1/git/changes`."""
        parts, who = self._parts, call.principal
        stored, duplicate, events = await take(parts, who, call.body)
        call.after(lambda: publish_now(parts.bus, parts.outbox, who.tenant, events))
        return GitAccepted(event=stored, duplicate=duplicate)

    async def stale(self, call: Call[None, StaleQuery]) -> StalePage:
        """`GET /v1/stale`."""
        who, query = call.principal, call.query
        scopes = _scopes(who, query)
        found = await self._parts.changes.stale(who, scopes, query.below(), query.limit + 1)
        items, following = cut_page(found, query.limit, lambda one: ById(id=one.memory.id))
        shown = [_item(one, self._parts.settings.half_lives) for one in items]
        return StalePage(items=shown, next=following, said=_said(shown))


def _scopes(who: Principal, query: StaleQuery) -> list[str]:
    """What to look through: a scope, a project with what lies in it, or all that may be read."""
    project = slug(query.project) if query.project else None
    if query.scope:
        scope = parse_scope(query.scope)
        if project and project_of(scope) != project:
            raise Invalid("scope", f"does not lie in project {project}")
        who.check_read([scope])
        return [scope]
    if project is None:
        return list(who.reads)
    home = f"project/{project}"
    who.check_read([home])
    return [one for one in (home, f"{home}/*") if who.may_read(one)]


def _item(one: Stale, lives: HalfLives) -> StaleItem:
    grade = one.memory.stale_grade
    assert grade is not None, "the list holds memories with open marks only"
    evidence = [Evidence.model_validate(each) for each in one.evidence]
    return StaleItem(
        memory=memory_body(one.memory, lives),
        grade=grade,
        score=one.memory.staleness,
        evidence=evidence,
    )


def _said(items: list[StaleItem]) -> list[str]:
    """A sentence for each file, the one that changed last first."""
    last: dict[str, datetime] = {}
    kinds: defaultdict[str, Counter[Kind]] = defaultdict(Counter)
    for item in items:
        for path in {one.path for one in item.evidence}:
            kinds[path][Kind(item.memory.kind)] += 1
        for one in item.evidence:
            last[one.path] = max(one.committed_at, last.get(one.path, one.committed_at))
    now = datetime.now(UTC)
    ordered = sorted(last.items(), key=lambda each: (each[1], each[0]), reverse=True)
    return [warning(path, (now - at).total_seconds(), kinds[path]) for path, at in ordered]
