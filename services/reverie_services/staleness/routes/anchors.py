"""Routes that list unanchored memories and store the code locations of memories."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from reverie.contracts.base import Name
from reverie.contracts.memories.git import (
    AnchorMemoriesRequest,
    AnchorMemoriesResponse,
    UnanchoredMemory,
    UnanchoredPage,
)
from reverie.contracts.memories.memories import GitLocation
from reverie.domain.access.scopes import slugify
from reverie.domain.entities.file_paths import build_anchor_metadata
from reverie.domain.redaction.redactor import Redactor
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import IdCursor, PageQuery, cut_page
from reverie.runtime.http.routes import RouteTable
from reverie.store.staleness.stale_marks import LockedProject
from reverie_services.staleness.dependencies import StalenessDependencies
from reverie_services.staleness.marks.apply_change import recompute_marks


class UnanchoredQuery(PageQuery):
    """The scopes of unanchored memories."""

    project: Name


routes = RouteTable[StalenessDependencies]()


@routes.add("GET /v1/git/anchors")
async def list_unanchored(
    deps: StalenessDependencies, call: Call[None, UnanchoredQuery]
) -> UnanchoredPage:
    """List memories without lines or symbols."""
    principal, query = call.principal, call.query
    project = slugify(query.project)
    rows = await deps.stale_marks.list_unlocated(
        principal, project, query.before_id(), query.limit + 1
    )
    items, next_cursor = cut_page(rows, query.limit, lambda item: IdCursor(id=item["memory"]))
    return UnanchoredPage(items=[UnanchoredMemory(**item) for item in items], next=next_cursor)


@routes.add("POST /v1/git/anchors")
async def set_anchors(
    deps: StalenessDependencies, call: Call[AnchorMemoriesRequest, None]
) -> AnchorMemoriesResponse:
    """Set the lines and symbols that memories refer to."""
    principal, body = call.principal, call.body
    project = slugify(body.project)
    git_by_memory = {item.memory: item.git for item in body.anchors}
    versions = await deps.stale_marks.load_writable_versions(
        principal, project, list(git_by_memory)
    )
    tenant_key = (principal.tenant, principal.tenant_name)
    async with deps.stale_marks.lock_project(tenant_key, project) as locked_project:
        for memory_id, git in sorted(git_by_memory.items()):
            await _store_anchor(locked_project, memory_id, git, versions[memory_id], call.redactor)
    for memory_id in sorted(git_by_memory):
        await recompute_marks(deps, *tenant_key, project, memory_id)
    return AnchorMemoriesResponse(anchored=len(git_by_memory))


async def _store_anchor(
    locked_project: LockedProject,
    memory_id: UUID,
    git: GitLocation,
    version: int,
    redactor: Redactor,
) -> None:
    redacted = redactor.redact_value(git.model_dump(mode="json")).value
    metadata: dict[str, Any] = {"memory_version": version}
    if git.committed_at:
        metadata["since"] = redacted["committed_at"]
    paths = (*redacted["files"], *redacted["lines"], *redacted["symbols"], *redacted["blobs"])
    for path in dict.fromkeys(paths):
        await locked_project.anchor_memory(
            memory_id, path, build_anchor_metadata(path, redacted) | metadata
        )
