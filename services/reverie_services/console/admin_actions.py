"""Actions of administrators: keys, webhooks, settings, dead letters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from multidict import MultiMapping
from pydantic import BaseModel

from reverie.contracts.context import ContextBudgetsUpdate
from reverie.contracts.dreams import DreamLimitsUpdate, LlmBudgetUpdate, TenantLimitsUpdate
from reverie.mcp.rest_calls import invalid_argument
from reverie_services.console.action import Action, ActionField, Send, form_call
from reverie_services.console.page_request import PageRequest, read_time, split_list


async def _delete_webhook(request: PageRequest, item: str) -> Any:
    kind, _, project = item.partition("/")
    path = f"/v1/git/webhooks/{quote(kind, safe='')}/{quote(project, safe='')}"
    return await request.send("DELETE", path)


async def _create_key(request: PageRequest, _: str) -> Any:
    names = ("label", "role", "project", "agent", "user")
    body: dict[str, Any] = {name: request.form.get(name, "").strip() or None for name in names}
    for name in ("reads", "writes"):
        text = request.form.get(name, "").strip()
        body[name] = split_list(text) or None
        if text and body[name] is None:
            # Without scopes, a key may do all that its role allows.
            raise invalid_argument(name, "names no scope")
    body["expires_at"] = read_time(request.form.get("expires_at", "").strip() or None)
    return await request.send("POST", "/v1/admin/keys", body)


def _change_settings(path: str, fields: Sequence[ActionField]) -> Send:
    """A PATCH of settings: a field's name is its group and its name there, joined by a dot."""

    async def send(request: PageRequest, item: str) -> Any:
        body: dict[str, dict[str, float | None]] = {}
        for field in fields:
            group, _, name = field.name.partition(".")
            body.setdefault(group, {})[name] = _optional_number(request.form, field.name)
        return await request.send("PATCH", path.format(id=quote(item, safe="")), body)

    return send


def _settings_fields(group: str, label: str, model: type[BaseModel]) -> tuple[ActionField, ...]:
    return tuple(
        ActionField(f"{group}.{name}", f"{label}: {name.replace('_', ' ')}", "number")
        for name in model.model_fields
    )


def _optional_number(form: MultiMapping[str], name: str) -> float | None:
    text = form.get(name, "").strip()
    if not text:
        return None
    if _DECIMAL.fullmatch(text) is None:
        raise invalid_argument(name, "input should be a number")
    return float(text) if "." in text else int(text)


_DECIMAL = re.compile(r"[0-9]{1,16}(\.[0-9]{1,6})?", re.ASCII)
_DREAM_SETTINGS = _settings_fields("dream", "Dream", DreamLimitsUpdate)
TENANT_SETTINGS = (
    *_settings_fields("limits", "Quota", TenantLimitsUpdate),
    *_settings_fields("llm", "Language model", LlmBudgetUpdate),
    *_DREAM_SETTINGS,
)
PROJECT_SETTINGS = (
    *_settings_fields("context", "Context", ContextBudgetsUpdate),
    *_DREAM_SETTINGS,
)

ADMIN_ACTIONS = (
    Action(
        "create-key",
        "Make a key",
        "Makes a key with no more rights than yours. Its text is shown once. Without scopes, "
        "it may read and write all that its role allows.",
        "",
        _create_key,
        (
            ActionField("label", "What it is for", required=True),
            ActionField("role", "Role", "select", ("writer", "reader", "ci", "admin")),
            ActionField("reads", "Scopes that it may read, separated by commas"),
            ActionField("writes", "Scopes that it may write, separated by commas"),
            ActionField("project", "Project"),
            ActionField("agent", "Agent"),
            ActionField("user", "User"),
            ActionField("expires_at", "Expires (UTC)", "datetime-local"),
        ),
        subject="key",
        result_template="new_key.html",
    ),
    Action(
        "revoke-key",
        "Revoke",
        "The key ends: agents and people that use it are refused. This cannot be undone.",
        "The key is revoked.",
        form_call("DELETE", "/v1/admin/keys/{id}"),
        subject="key",
        is_final=True,
    ),
    Action(
        "delete-webhook",
        "Remove",
        "Pushes of this project announced by the forge are refused from now on.",
        "The webhook is removed.",
        _delete_webhook,
        subject="webhook",
    ),
    Action(
        "tenant-settings",
        "Change the settings of the tenant",
        "Quotas limit what all keys together may use, and the others apply to all projects. "
        "Empty means the setting of the operator.",
        "The settings are changed.",
        _change_settings("/v1/admin/settings", TENANT_SETTINGS),
        TENANT_SETTINGS,
        subject="settings",
    ),
    Action(
        "project-settings",
        "Change the settings of the project",
        "Applies to the next session of the project, and to its next dream. Empty means the "
        "setting of the tenant or of the operator.",
        "The settings are changed.",
        _change_settings("/v1/projects/{id}/settings", PROJECT_SETTINGS),
        PROJECT_SETTINGS,
        subject="project",
    ),
    Action(
        "replay-letter",
        "Send again",
        "Sends the message to its stream again. If its cause is not mended, it comes back with "
        "another number.",
        "Sent again.",
        form_call("POST", "/v1/admin/dead-letters/{id}/replay"),
        subject="letter",
    ),
)
