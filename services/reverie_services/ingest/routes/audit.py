"""Route that lists the audit log: who read and changed what."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from reverie.contracts.admin import AuditEntryBody, AuditPage
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import IdCursor, PageQuery, cut_page
from reverie.runtime.http.routes import RouteTable
from reverie.store.platform.audit import AuditFilter, AuditTable

AuditSearchText = Annotated[str, Field(min_length=1, max_length=200)]


class AuditQuery(PageQuery):
    """The filter of audit entries: agent or key, words of the action, subject, effect, and time
    range.
    """

    actor: AuditSearchText | None = None
    action: AuditSearchText | None = None
    subject: AuditSearchText | None = None
    changes: Literal["true", "false"] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None


routes = RouteTable[AuditTable]()


@routes.add("GET /v1/admin/audit")
async def list_audit_entries(deps: AuditTable, call: Call[None, AuditQuery]) -> AuditPage:
    """List audit entries, newest first."""
    query = call.query
    audit_filter = AuditFilter(
        query.actor,
        query.action,
        query.subject,
        None if query.changes is None else query.changes == "true",
        query.since,
        query.until,
    )
    before_id = query.before_id()
    rows = await deps.page(call.principal, audit_filter, before_id, query.limit + 1)
    items, next_cursor = cut_page(rows, query.limit, lambda entry: IdCursor(id=entry.id))
    bodies = [AuditEntryBody.model_validate(entry, from_attributes=True) for entry in items]
    return AuditPage(items=bodies, next=next_cursor)
