"""What a project sets for itself, over HTTP."""

from __future__ import annotations

from reverie.contracts.context import BudgetsBody, ProjectSettings, SetProject
from reverie.domain.budgets import Budgets
from reverie.domain.errors import Invalid
from reverie.domain.fields import below
from reverie.domain.scopes import slug
from reverie.ingest.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route


def routes(parts: Parts) -> list[Route]:
    """The table of projects."""
    doors = Doors(parts)
    path = "/v1/projects/{name}/settings"
    return [
        Route("GET", path, doors.read, answer=ProjectSettings,
              summary="What a project has set: the budgets of its context"),
        Route("PATCH", path, doors.change, SetProject, answer=ProjectSettings,
              summary="Change some of it"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._briefings = parts.briefings

    async def read(self, call: Call[None, None]) -> ProjectSettings:
        """`GET /v1/projects/{name}/settings`."""
        who, project = call.principal, slug(call.path["name"])
        who.check_read([f"project/{project}"])
        return _body(project, await self._briefings.budgets(who, project))

    async def change(self, call: Call[SetProject, None]) -> ProjectSettings:
        """`PATCH /v1/projects/{name}/settings`."""
        who, project, asked = call.principal, slug(call.path["name"]), call.body.context
        who.check_write(f"project/{project}")
        fields = None if asked is None else asked.model_dump(exclude_none=True)
        try:
            made = await self._briefings.set_budgets(who, project, fields)
        except Invalid as error:
            raise below("context", error) from None
        return _body(project, made)


def _body(project: str, budgets: Budgets) -> ProjectSettings:
    return ProjectSettings(
        project=project, context=BudgetsBody(**vars(budgets), total=budgets.total)
    )
