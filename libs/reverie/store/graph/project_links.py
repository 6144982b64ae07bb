"""Stores links between projects that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Conflict, NotFound
from reverie.store.db.database import Database
from reverie.store.db.idempotency import run_once

MAX_LINKS = 20
"""The links of one project: each makes its recalls search one project more."""
LINK_SETTING = "link/{}"
"""The setting under which a project keeps its half of a link."""


@dataclass(frozen=True)
class ProjectLink:
    """A link as one of its projects sees it."""

    project: str
    linked: str
    discoverable: bool


class ProjectLinkStore:
    """Links between projects. A link is two settings, so it ends with either project."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def link(self, principal: Principal, link: ProjectLink) -> None:
        """Links two projects, or changes their link. Raises `Conflict` for one link too many."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            await connection.fetch_rows("settings_lock")
            for project, other in ((link.project, link.linked), (link.linked, link.project)):
                existing = await connection.fetch_rows("project_links", [project])
                if len(existing) >= MAX_LINKS and other not in {row["linked"] for row in existing}:
                    raise Conflict(f"the project {project} has {MAX_LINKS} links: unlink one")
                value = {"discoverable": link.discoverable}
                await connection.fetch_rows(
                    "setting_put", project, LINK_SETTING.format(other), value
                )

    async def unlink(self, principal: Principal, project: str, linked: str) -> None:
        """Ends a link. Raises `NotFound` if there is none."""
        async with self._db.tenant_transaction(principal.tenant) as connection:

            async def unlink() -> bool:
                await connection.fetch_rows("settings_lock")
                existing = await connection.fetch_rows("project_links", [project])
                for owner, other in ((project, linked), (linked, project)):
                    await connection.fetch_rows("setting_reset", owner, LINK_SETTING.format(other))
                return linked in {row["linked"] for row in existing}

            if not await run_once(connection, "unlink", unlink):
                raise NotFound("link", f"{project} to {linked}")

    async def list_links(self, principal: Principal, projects: Sequence[str]) -> list[ProjectLink]:
        """The links of these projects, whoever may read the linked ones."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows("project_links", list(projects))
        return [ProjectLink(**row) for row in found]
