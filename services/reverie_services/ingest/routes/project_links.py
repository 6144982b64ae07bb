"""Routes that link projects which belong together."""

from __future__ import annotations

from typing import Any

from reverie.contracts.projects import (
    LinkProjectsRequest,
    ProjectLinkBody,
    ProjectLinkPage,
    UnlinkProjectsResponse,
)
from reverie.domain.access.scopes import slugify
from reverie.domain.core.errors import InvalidInput
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import CursorPosition, PageQuery, cut_page, decode_cursor
from reverie.runtime.http.routes import RouteTable
from reverie.store.graph.project_links import ProjectLink, ProjectLinkStore

routes = RouteTable[ProjectLinkStore]()


class ProjectLinkCursor(CursorPosition):
    """The last linked project of a page."""

    linked: str


@routes.add("GET /v1/projects/{name}/links")
async def list_project_links(
    links: ProjectLinkStore, call: Call[None, PageQuery]
) -> ProjectLinkPage:
    """List the projects that are linked to a project."""
    principal, project = call.principal, slugify(call.path["name"])
    principal.check_read([f"project/{project}"])
    after = decode_cursor(call.query.cursor, ProjectLinkCursor)
    bodies = [
        ProjectLinkBody(**vars(link), readable=principal.may_read(f"project/{link.linked}"))
        for link in await links.list_links(principal, [project])
        if after is None or link.linked > after.linked
    ]
    known = [body for body in bodies if body.readable or body.discoverable]
    items, next_cursor = cut_page(
        known, call.query.limit, lambda body: ProjectLinkCursor(linked=body.linked)
    )
    return ProjectLinkPage(items=items, next=next_cursor)


@routes.add("PUT /v1/projects/{name}/links/{linked}")
async def link_projects(
    links: ProjectLinkStore, call: Call[LinkProjectsRequest, None]
) -> ProjectLinkBody:
    """Link two projects: recall in one also searches the other."""
    principal, (project, linked) = call.principal, _parse_projects(call)
    principal.check_write(f"project/{project}")
    principal.check_write(f"project/{linked}")
    link = ProjectLink(project, linked, call.body.discoverable)
    await links.link(principal, link)
    return ProjectLinkBody(**vars(link), readable=principal.may_read(f"project/{linked}"))


@routes.add("DELETE /v1/projects/{name}/links/{linked}")
async def unlink_projects(
    links: ProjectLinkStore, call: Call[None, None]
) -> UnlinkProjectsResponse:
    """End the link of two projects; who may write one of them may do so."""
    principal, (project, linked) = call.principal, _parse_projects(call)
    if not principal.may_write(f"project/{linked}"):
        principal.check_write(f"project/{project}")
    await links.unlink(principal, project, linked)
    return UnlinkProjectsResponse(project=project, linked=linked)


def _parse_projects(call: Call[Any, None]) -> tuple[str, str]:
    """The projects of the path. Raises `InvalidInput` if they are the same."""
    project, linked = (
        slugify(call.redactor.redact(call.path[name]).text) for name in ("name", "linked")
    )
    if project == linked:
        raise InvalidInput("linked", "is the project itself: name another one")
    return project, linked
