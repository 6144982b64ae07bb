"""The audit log over HTTP, for who administers the tenant."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from reverie.contracts.admin import AuditBody, AuditPage
from reverie.ingest.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.paging import ById, PageQuery, cut_page
from reverie.runtime.routes import Route
from reverie.store.audit import Sought

Word = Annotated[str, Field(min_length=1, max_length=200)]


class AuditQuery(PageQuery):
    """Which notes: by agent or key, words in the action, what it was about, whether it changed
    something, from when on, before when."""

    who: Word | None = None
    action: Word | None = None
    subject: Word | None = None
    changes: Literal["true", "false"] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None


def routes(parts: Parts) -> list[Route]:
    """The one route."""

    async def audit(call: Call[None, AuditQuery]) -> AuditPage:
        query = call.query
        sought = Sought(
            query.who, query.action, query.subject,
            None if query.changes is None else query.changes == "true",
            query.since, query.until,
        )  # fmt: skip
        below = query.below()
        found = await parts.audit.page(call.principal, sought, below, query.limit + 1)
        items, following = cut_page(found, query.limit, lambda one: ById(id=one.id))
        bodies = [AuditBody.model_validate(one, from_attributes=True) for one in items]
        return AuditPage(items=bodies, next=following)

    return [
        Route("GET", "/v1/admin/audit", audit, query=AuditQuery, answer=AuditPage,
              summary="List who read and changed what, newest first"),
    ]  # fmt: skip
