"""What becomes of a branch's memories: merged, a dream lets them hold for the project; deleted,
they rest."""

from __future__ import annotations

from reverie.bus.relay import publish_now
from reverie.contracts.git import GitChange
from reverie.domain.scopes import MAIN_LINES, slug
from reverie.runtime.telemetry import inject_headers
from reverie.staleness.parts import Parts
from reverie.store.changes import Stored

AT_ONCE = 200


async def settle_branches(parts: Parts, tenant: tuple[int, str], stored: Stored) -> None:
    """Carries out what a change says of branches. Safe to repeat."""
    body = stored.body
    if not on_main_line(body):
        if body.deleted:
            await _archive(parts, tenant, stored)
    elif body.merged and body.after:
        branches = sorted({slug(name) for name in body.merged})
        async with parts.doubts.of(tenant, stored.project) as project:
            tickets = await project.merged(branches, stored.id, inject_headers())
        await publish_now(parts.bus, parts.outbox, tenant[0], tickets)


def on_main_line(body: GitChange) -> bool:
    """Whether a change is of the branch that everyone works on."""
    if body.default_branch is not None:
        return body.branch == body.default_branch
    return body.branch in MAIN_LINES


async def _archive(parts: Parts, tenant: tuple[int, str], stored: Stored) -> None:
    """Some at a time, until there are none."""
    branch, headers = slug(stored.body.branch), inject_headers()
    while True:
        async with parts.doubts.of(tenant, stored.project) as project:
            if await project.archive(branch, AT_ONCE, headers) < AT_ONCE:
                return
