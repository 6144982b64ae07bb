"""Where memories belong in the code, as who is beside it has found."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from reverie.contracts.base import Name
from reverie.contracts.git import Anchored, Anchors, Lacking, LackingPage
from reverie.contracts.memories import GitPlace
from reverie.domain.anchors import known_of
from reverie.domain.redaction import redact_value
from reverie.domain.scopes import slug
from reverie.runtime.calls import Call
from reverie.runtime.paging import ById, PageQuery, cut_page
from reverie.runtime.routes import Route
from reverie.staleness.parts import Parts
from reverie.staleness.propagate import look_again
from reverie.store.doubts import Project


class LackingQuery(PageQuery):
    """Whose memories."""

    project: Name


def routes(parts: Parts) -> list[Route]:
    """The table of anchors."""

    async def lacking(call: Call[None, LackingQuery]) -> LackingPage:
        who, query = call.principal, call.query
        project = slug(query.project)
        found = await parts.doubts.lacking(who, project, query.below(), query.limit + 1)
        items, following = cut_page(found, query.limit, lambda one: ById(id=one["memory"]))
        return LackingPage(items=[Lacking(**one) for one in items], next=following)

    async def anchor(call: Call[Anchors, None]) -> Anchored:
        who, body = call.principal, call.body
        project = slug(body.project)
        wanted = {one.memory: one.git for one in body.anchors}
        versions = await parts.doubts.writable(who, project, list(wanted))
        whose = (who.tenant, who.tenant_name)
        async with parts.doubts.of(whose, project) as held:
            for memory, place in sorted(wanted.items()):
                await _anchor(held, memory, place, versions[memory])
        for memory in sorted(wanted):
            await look_again(parts, *whose, project, memory)
        return Anchored(anchored=len(wanted))

    return [
        Route("GET", "/v1/git/anchors", lacking, query=LackingQuery, answer=LackingPage,
              summary="Memories whose lines in their files are not known"),
        Route("POST", "/v1/git/anchors", anchor, Anchors, answer=Anchored,
              summary="Say which lines and symbols memories speak of"),
    ]  # fmt: skip


async def _anchor(held: Project, memory: UUID, place: GitPlace, version: int) -> None:
    told = redact_value(place.model_dump(mode="json")).value
    seen: dict[str, Any] = {"told": version}
    if place.committed_at:
        seen["since"] = told["committed_at"]
    named = (*told["files"], *told["lines"], *told["symbols"], *told["blobs"])
    for path in dict.fromkeys(named):
        await held.anchor(memory, path, known_of(path, told) | seen)
