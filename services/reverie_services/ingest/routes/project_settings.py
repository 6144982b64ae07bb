"""Routes for the settings of a tenant and of its projects."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from reverie.contracts.context import (
    ContextBudgetsBody,
    ProjectSettingsBody,
    UpdateProjectSettingsRequest,
)
from reverie.contracts.dreams import (
    DreamLimitsBody,
    LlmBudgetBody,
    TenantLimitsBody,
    TenantSettingsBody,
    UpdateTenantSettingsRequest,
)
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import slugify
from reverie.domain.core.errors import InvalidInput, prefix_field
from reverie.domain.extraction.dream_log import DEFAULT_THRESHOLDS
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import RouteTable
from reverie.store.sessions.dream_runs import ALL_PROJECTS, combine_limits
from reverie_services.ingest.dependencies import ProjectSettingsDependencies

routes = RouteTable[ProjectSettingsDependencies]()


@routes.add("GET /v1/projects/{name}/settings")
async def get_project_settings(
    deps: ProjectSettingsDependencies, call: Call[None, None]
) -> ProjectSettingsBody:
    """Get the settings of a project."""
    principal, project = call.principal, slugify(call.path["name"])
    principal.check_read([f"project/{project}"])
    return await _load_project_settings(deps, principal, project)


@routes.add("PATCH /v1/projects/{name}/settings")
async def update_project_settings(
    deps: ProjectSettingsDependencies, call: Call[UpdateProjectSettingsRequest, None]
) -> ProjectSettingsBody:
    """Change settings of a project."""
    principal, changes = call.principal, call.body
    project = slugify(call.redactor.redact(call.path["name"]).text)
    principal.check_write(f"project/{project}")
    if not changes.model_fields_set:
        raise InvalidInput("context", "name what to change: context, dream")
    if "dream" in changes.model_fields_set:
        await _update_dream_limits(deps, principal, project, changes.dream)
    if "context" in changes.model_fields_set:
        try:
            await deps.contexts.set_budgets(principal, project, _dump_fields(changes.context))
        except InvalidInput as error:
            raise prefix_field("context", error) from None
    return await _load_project_settings(deps, principal, project)


@routes.add("GET /v1/admin/settings")
async def get_tenant_settings(
    deps: ProjectSettingsDependencies, call: Call[None, None]
) -> TenantSettingsBody:
    """Get the settings of the tenant."""
    principal = call.principal
    principal.check_admin()
    return await _load_tenant_settings(deps, principal)


@routes.add("PATCH /v1/admin/settings")
async def update_tenant_settings(
    deps: ProjectSettingsDependencies, call: Call[UpdateTenantSettingsRequest, None]
) -> TenantSettingsBody:
    """Change settings of the tenant."""
    principal, changes = call.principal, call.body
    principal.check_admin()
    if not changes.model_fields_set:
        raise InvalidInput("dream", "name what to change: dream, llm, limits")
    if "dream" in changes.model_fields_set:
        await _update_dream_limits(deps, principal, ALL_PROJECTS, changes.dream)
    if "llm" in changes.model_fields_set:
        await deps.llm_usage.update_limits(principal.tenant, _dump_fields(changes.llm))
    if "limits" in changes.model_fields_set:
        await deps.quotas.update_tenant_limits(principal.tenant, _dump_fields(changes.limits))
    return await _load_tenant_settings(deps, principal)


async def _load_tenant_settings(
    deps: ProjectSettingsDependencies, principal: Principal
) -> TenantSettingsBody:
    calls, tokens, llm_overrides = await deps.llm_usage.load_limits(principal.tenant)
    today = await deps.llm_usage.load_today(principal.tenant)
    llm = LlmBudgetBody(
        calls_per_day=calls,
        tokens_per_day=tokens,
        overrides=sorted(llm_overrides),
        **vars(today),
    )
    effective, overrides, used = await deps.quotas.load_tenant_limits(principal.tenant)
    set_limits = {name: limit for name, limit in vars(effective).items() if limit is not None}
    limits = TenantLimitsBody(limits=set_limits, overrides=sorted(overrides), used=used)
    dream = await _load_dream_limits(deps, principal, ALL_PROJECTS)
    return TenantSettingsBody(dream=dream, llm=llm, limits=limits)


async def _load_project_settings(
    deps: ProjectSettingsDependencies, principal: Principal, project: str
) -> ProjectSettingsBody:
    budgets = await deps.contexts.load_budgets(principal, project)
    return ProjectSettingsBody(
        project=project,
        context=ContextBudgetsBody(**vars(budgets), total=budgets.total),
        dream=await _load_dream_limits(deps, principal, project),
    )


async def _update_dream_limits(
    deps: ProjectSettingsDependencies, principal: Principal, project: str, changes: BaseModel | None
) -> None:
    try:
        await deps.dream_limits.update(
            principal.tenant, project, _dump_fields(changes), DEFAULT_THRESHOLDS
        )
    except InvalidInput as error:
        raise prefix_field("dream", error) from None


async def _load_dream_limits(
    deps: ProjectSettingsDependencies, principal: Principal, project: str
) -> DreamLimitsBody:
    """Loads the limits in force: the project's override the tenant's, which override the
    service's.
    """
    levels = dict.fromkeys((ALL_PROJECTS, project))
    stored = [await deps.dream_limits.load(principal.tenant, level) for level in levels]
    effective = combine_limits(DEFAULT_THRESHOLDS, stored)
    return DreamLimitsBody(**vars(effective), overrides=sorted(stored[-1]))


def _dump_fields(changes: BaseModel | None) -> dict[str, Any] | None:
    return None if changes is None else changes.model_dump(exclude_unset=True)
