"""What becomes of a branch's memories: merged, they hold for the project; deleted, they rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from reverie.contracts.git import GitChange
from reverie.domain.scopes import MAIN_LINES, slug
from reverie.runtime.telemetry import inject_headers
from reverie.staleness.parts import Parts
from reverie.store.changes import Stored
from reverie.store.doubts import Project

AT_ONCE = 200


async def settle_branches(parts: Parts, tenant: tuple[int, str], stored: Stored) -> None:
    """Carries out what a change says of branches. Safe to repeat."""
    body, headers = stored.body, inject_headers()
    main = on_main_line(body)

    async def archive(project: Project) -> int:
        return await project.archive(slug(body.branch), AT_ONCE, headers)

    async def promote(branch: str, project: Project) -> int:
        return await project.promote(slug(branch), stored.id, body.after or "", AT_ONCE, headers)

    if body.deleted and not main:
        await _all(parts, tenant, stored, archive)
    for branch in body.merged if main else ():
        await _all(parts, tenant, stored, partial(promote, branch))


def on_main_line(body: GitChange) -> bool:
    """Whether a change is of the branch that everyone works on."""
    if body.default_branch is not None:
        return body.branch == body.default_branch
    return body.branch in MAIN_LINES


async def _all(
    parts: Parts,
    tenant: tuple[int, str],
    stored: Stored,
    some: Callable[[Project], Awaitable[int]],
) -> None:
    """Some at a time, until there are none."""
    while True:
        async with parts.doubts.of(tenant, stored.project) as project:
            if await some(project) < AT_ONCE:
                return
