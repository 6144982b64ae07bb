"""Bodies of links between projects, and of the question which project knows something."""

from __future__ import annotations

from pydantic import Field

from reverie.contracts.base import NonBlankStr, PageResponse, RequestBody, ResponseBody


class LinkProjectsRequest(RequestBody):
    """`PUT /v1/projects/{name}/links/{linked}`.

    `discoverable`: who reads one of the projects and not the other is told its name, and how many
    of its memories answer a question. They never see its text.
    """

    discoverable: bool = False


class ProjectLinkBody(ResponseBody):
    """A link between two projects. `readable` says whether the key may read the linked one."""

    project: str
    linked: str
    discoverable: bool
    readable: bool = True


class ProjectLinkPage(PageResponse):
    """`GET /v1/projects/{name}/links`. Links to projects that the key may not know are left out."""

    items: list[ProjectLinkBody]


class UnlinkProjectsResponse(ResponseBody):
    """`DELETE /v1/projects/{name}/links/{linked}`: the projects that are no longer linked."""

    project: str
    linked: str


class RecallProjectsRequest(RequestBody):
    """`POST /v1/recall/projects`: which projects know the answer to `query`."""

    query: NonBlankStr


class KnowingProject(ResponseBody):
    """A project, and how many of the nearest memories in it answer the question.

    `readable` is false for a linked project of which the key may know no more than this.
    `linked_to` names the readable projects that it is linked to. `relevance` is that of its best
    memory; null if the key may not read it.
    """

    project: str
    count: int
    readable: bool = True
    linked_to: list[str] = Field(default_factory=list)
    relevance: float | None = None


class RecallProjectsResponse(ResponseBody):
    """The projects that know something, those that know most first.

    `degraded` names the arms that failed; the other arms answered.
    """

    items: list[KnowingProject]
    degraded: list[str] = Field(default_factory=list)
