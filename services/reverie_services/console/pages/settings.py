"""The page of the settings in force, with links to the forms that change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from reverie.domain.context.budgets import ContextBudgets
from reverie_services.console.page_request import PageRequest, PageValues
from reverie_services.console.pages.registry import PAGES
from reverie_services.console.requests import HOME, add_query


@PAGES.add("settings", "settings.html", "Settings", "Administration")
async def show_settings(request: PageRequest) -> PageValues:
    """The settings in force: of the tenant, and of one project."""
    project = request.ask("project")
    tenant_settings = await request.get("/v1/admin/settings")
    values: PageValues = {
        "tenant_settings": tenant_settings,
        "tenant_form": _form_link(request, "tenant-settings", "", _list_overrides(tenant_settings)),
        "project": project,
    }
    if project:
        found = await request.get(f"/v1/projects/{quote(project, safe='')}/settings")
        budgets = {
            f"context.{name}": found["context"][name]
            for name, default in vars(ContextBudgets()).items()
            if found["context"][name] != default
        }
        changed = _list_overrides(found) | budgets
        values |= {
            "project_settings": found,
            "project_form": _form_link(request, "project-settings", project, changed),
        }
    return values


def _list_overrides(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that differ from the operator's, by the names of the form's fields."""
    return {
        f"{group}.{name}": values.get("limits", values)[name]
        for group, values in settings.items()
        if isinstance(values, dict)
        for name in values.get("overrides", ())
    }


def _form_link(request: PageRequest, action: str, item: str, values: Mapping[str, Any]) -> str:
    """The URL of a form that is filled in with these settings."""
    filled = {name: str(value) for name, value in values.items()}
    here = request.link(done=None, count=None)
    return add_query(f"{HOME}/do/{action}", id=item, next=here, **filled)
