"""Route that says which projects know the answer to a question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from reverie.contracts.projects import (
    KnowingProject,
    RecallProjectsRequest,
    RecallProjectsResponse,
)
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import project_of_scope
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import check_size
from reverie.store.graph.project_links import ProjectLink
from reverie.store.memories.memories import VISIBLE_STATUSES
from reverie.store.search.search import SearchFilter
from reverie_services.recall.dependencies import RecallDependencies
from reverie_services.recall.pipeline.recall import recall
from reverie_services.recall.pipeline.state import RecallQuestion, RecallResult
from reverie_services.recall.pipeline.visible_scopes import or_none_if_unavailable
from reverie_services.recall.routes.response_bodies import round_relevance

MAX_COUNTED = 100
"""The nearest memories that are looked at."""

routes = RouteTable[RecallDependencies]()


@routes.add("POST /v1/recall/projects", read_only=True)
async def recall_projects(
    deps: RecallDependencies, call: Call[RecallProjectsRequest, None]
) -> RecallProjectsResponse:
    """Find the projects that know the answer to a question."""
    principal, query, settings = call.principal, call.body.query, deps.pipeline.settings
    check_size("query", query, settings.content_limit, "content_limit")
    patterns = principal.narrow_to_readable(["project/*"])
    result = await recall(deps.pipeline, principal, _build_question(query, patterns))
    threshold, degraded = settings.relevance_threshold, set(result.degraded)
    readable = _rate_projects(result, threshold)
    known = {project for pattern in patterns if (project := project_of_scope(pattern))}
    found = await or_none_if_unavailable(
        deps.project_links.list_links(principal, sorted(known | readable.keys())),
        settings.arm_timeout,
    )
    links = [link for link in found or () if principal.may_read(f"project/{link.project}")]
    items = [
        KnowingProject(
            project=project,
            count=len(ratings),
            linked_to=_list_linked(principal, links, project),
            relevance=round_relevance(max(ratings), principal),
        )
        for project, ratings in readable.items()
    ]
    hidden = {
        link.linked
        for link in links
        if link.discoverable and not principal.may_read(f"project/{link.linked}")
    }
    for project in sorted(hidden - readable.keys()):
        scope = f"project/{project}/*"
        question = _build_question(query, [scope])
        result = await recall(deps.pipeline, replace(principal, reads=(scope,)), question)
        degraded |= set(result.degraded)
        if count := len(_rate_projects(result, threshold).get(project, ())):
            linked_to = _list_linked(principal, links, project)
            items.append(
                KnowingProject(project=project, count=count, readable=False, linked_to=linked_to)
            )
    items.sort(key=lambda item: (-item.count, item.project))
    degraded |= {"links"} if found is None else set()
    return RecallProjectsResponse(items=items, degraded=sorted(degraded))


def _build_question(query: str, scopes: list[str]) -> RecallQuestion:
    search_filter = SearchFilter(scopes, list(VISIBLE_STATUSES))
    return RecallQuestion(query, search_filter, MAX_COUNTED, None, 0, include_turns=False)


def _rate_projects(result: RecallResult, threshold: float) -> dict[str, list[float]]:
    """The relevance of the memories that answer, by project."""
    ratings: dict[str, list[float]] = defaultdict(list)
    for hit in result.hits:
        project = project_of_scope(hit.item.scope)
        if project and hit.relevance is not None and hit.relevance >= threshold:
            ratings[project].append(hit.relevance)
    return ratings


def _list_linked(principal: Principal, links: Iterable[ProjectLink], project: str) -> list[str]:
    """The readable projects that a project is linked to."""
    pairs = [{link.project, link.linked} for link in links]
    others = {other for pair in pairs if project in pair for other in pair - {project}}
    return sorted(other for other in others if principal.may_read(f"project/{other}"))
