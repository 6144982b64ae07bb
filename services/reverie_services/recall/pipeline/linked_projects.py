"""Recalls in the projects that are linked to a session's own, too, and tells such hits apart."""

from __future__ import annotations

from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import project_of_scope
from reverie.domain.context.active_set_entries import MAX_PER_SCOPE
from reverie.domain.retrieval.answer import RankedHit
from reverie.store.graph.project_links import ProjectLinkStore
from reverie.store.memories.memories import VISIBLE_STATUSES
from reverie.store.search.search import SearchFilter
from reverie_services.recall.dependencies import RecallDependencies
from reverie_services.recall.pipeline.recall import measure_recall
from reverie_services.recall.pipeline.state import PreflowTurn, RecallQuestion, RecallRecord
from reverie_services.recall.pipeline.visible_scopes import or_none_if_unavailable

MAX_HITS = MAX_PER_SCOPE
"""So many that some are new, even if the session was given the first ones before."""


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
    """Says by which arms a hit was found, and whether in a project linked to that of `home`."""
    project = project_of_scope(hit.item.scope)
    place = " in a linked project" if project not in {None, project_of_scope(home)} else ""
    return f"found by {' and '.join(hit.scored.arm_ranks)}{place}"


async def recall_turn(
    deps: RecallDependencies, principal: Principal, turn: PreflowTurn, text: str, scopes: list[str]
) -> RecallRecord:
    """Recalls what answers the message, in linked projects, too, unless the turn names scopes."""
    session = turn.session
    project = None if turn.scopes is not None else project_of_scope(session.scope)
    linked, _ = await find_linked_scopes(
        deps.project_links, principal, project, deps.pipeline.settings.arm_timeout
    )
    question = RecallQuestion(
        text,
        SearchFilter([*scopes, *linked], list(VISIBLE_STATUSES)),
        limit=MAX_HITS,
        budget_tokens=None,
        depth=2,
        include_turns=False,
        agent=session.agent,
    )
    return await measure_recall(deps.pipeline, principal, question, session.id)
