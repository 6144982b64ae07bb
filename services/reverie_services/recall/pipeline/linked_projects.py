"""Searches projects that are linked to the one that is asked about, and says what is of them."""

from __future__ import annotations

from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import project_of_scope
from reverie.domain.retrieval.answer import RankedHit
from reverie.store.memories.project_links import ProjectLinkStore
from reverie_services.recall.pipeline.visible_scopes import or_none_if_unavailable


async def find_linked_scopes(
    links: ProjectLinkStore, principal: Principal, project: str | None, seconds: float
) -> tuple[list[str], list[str]]:
    """The scopes of linked projects as far as they may be read, with the missing parts.

    `links` is missing if the store does not answer.
    """
    if project is None:
        return [], []
    found = await or_none_if_unavailable(links.list_links(principal, [project]), seconds)
    scopes = [
        pattern
        for link in found or ()
        for pattern in (f"project/{link.linked}", f"project/{link.linked}/topic/*")
    ]
    return principal.narrow_to_readable(scopes), [] if found is not None else ["links"]


def explain_hit(hit: RankedHit, home: str) -> str:
    """By which arms a hit of a session was found, and whether in a linked project."""
    project = project_of_scope(hit.item.scope)
    place = " in a linked project" if project not in {None, project_of_scope(home)} else ""
    return f"found by {' and '.join(hit.scored.arm_ranks)}{place}"
