"""What a tenant and its projects set for themselves, over HTTP."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from reverie.contracts.context import BudgetsBody, ProjectSettings, SetProject
from reverie.contracts.dreams import (
    LimitsBody,
    LlmBody,
    SetTenant,
    TenantLimitsBody,
    TenantSettings,
)
from reverie.domain.access import Principal
from reverie.domain.errors import Invalid
from reverie.domain.fields import below
from reverie.domain.scopes import slug
from reverie.ingest.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route
from reverie.store.dream_runs import TENANT_WIDE, in_force


def routes(parts: Parts) -> list[Route]:
    """The table of what is set."""
    doors = Doors(parts)
    path = "/v1/projects/{name}/settings"
    return [
        Route("GET", path, doors.read, answer=ProjectSettings,
              summary="What a project has set: the budgets of its context, when it dreams"),
        Route("PATCH", path, doors.change, SetProject, answer=ProjectSettings,
              summary="Change some of it"),
        Route("GET", "/v1/admin/settings", doors.read_tenant, answer=TenantSettings,
              summary="What holds for all of the tenant: when it dreams, its language model"),
        Route("PATCH", "/v1/admin/settings", doors.change_tenant, SetTenant,
              answer=TenantSettings, summary="Change some of it"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def read(self, call: Call[None, None]) -> ProjectSettings:
        """`GET /v1/projects/{name}/settings`."""
        who, project = call.principal, slug(call.path["name"])
        who.check_read([f"project/{project}"])
        return await self._project(who, project)

    async def change(self, call: Call[SetProject, None]) -> ProjectSettings:
        """`PATCH /v1/projects/{name}/settings`."""
        who, project, asked = call.principal, slug(call.path["name"]), call.body
        who.check_write(f"project/{project}")
        if not asked.model_fields_set:
            raise Invalid("context", "name what to change: context, dream")
        if "dream" in asked.model_fields_set:
            await self._set_limits(who, project, asked.dream)
        if "context" in asked.model_fields_set:
            try:
                await self._parts.briefings.set_budgets(who, project, _fields(asked.context))
            except Invalid as error:
                raise below("context", error) from None
        return await self._project(who, project)

    async def read_tenant(self, call: Call[None, None]) -> TenantSettings:
        """`GET /v1/admin/settings`."""
        who = call.principal
        who.check_admin()
        return await self._tenant(who)

    async def change_tenant(self, call: Call[SetTenant, None]) -> TenantSettings:
        """`PATCH /v1/admin/settings`."""
        who, asked = call.principal, call.body
        who.check_admin()
        if not asked.model_fields_set:
            raise Invalid("dream", "name what to change: dream, llm, limits")
        if "dream" in asked.model_fields_set:
            await self._set_limits(who, TENANT_WIDE, asked.dream)
        if "llm" in asked.model_fields_set:
            await self._parts.llm.change(who.tenant, _fields(asked.llm))
        if "limits" in asked.model_fields_set:
            await self._parts.meters.limit_tenant(who.tenant, _fields(asked.limits))
        return await self._tenant(who)

    async def _tenant(self, who: Principal) -> TenantSettings:
        calls, tokens, kept = await self._parts.llm.limits(who.tenant)
        today = await self._parts.llm.today(who.tenant)
        llm = LlmBody(calls_a_day=calls, tokens_a_day=tokens, set=sorted(kept), **vars(today))
        given, own, used = await self._parts.meters.of_tenant(who.tenant)
        held = {name: limit for name, limit in vars(given).items() if limit is not None}
        limits = TenantLimitsBody(limits=held, set=sorted(own), used=used)
        dream = await self._limits(who, TENANT_WIDE)
        return TenantSettings(dream=dream, llm=llm, limits=limits)

    async def _project(self, who: Principal, project: str) -> ProjectSettings:
        budgets = await self._parts.briefings.budgets(who, project)
        return ProjectSettings(
            project=project,
            context=BudgetsBody(**vars(budgets), total=budgets.total),
            dream=await self._limits(who, project),
        )

    async def _set_limits(self, who: Principal, project: str, asked: BaseModel | None) -> None:
        base = self._parts.settings.dream_limits
        try:
            await self._parts.limits.change(who.tenant, project, _fields(asked), base)
        except Invalid as error:
            raise below("dream", error) from None

    async def _limits(self, who: Principal, project: str) -> LimitsBody:
        """Those in force: a project's over the tenant's over the services'."""
        places = dict.fromkeys((TENANT_WIDE, project))
        kept = [await self._parts.limits.read(who.tenant, place) for place in places]
        made = in_force(self._parts.settings.dream_limits, kept)
        return LimitsBody(**vars(made), set=sorted(kept[-1]))


def _fields(asked: BaseModel | None) -> dict[str, Any] | None:
    return None if asked is None else asked.model_dump(exclude_none=True)
