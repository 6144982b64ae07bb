"""`reverie admin settings`: shows and changes the settings of a tenant or a project."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import JsonObject
from reverie.domain.core.errors import InvalidInput


@click.command("settings")
@click.option(
    "--change",
    "-c",
    multiple=True,
    metavar="PART[.NAME]=VALUE",
    help="A setting to change; null restores its default.",
)
@click.option("--project", "-p", help="Only the settings of this project.")
@common_options
def edit_settings(options: CommonOptions, change: tuple[str, ...], project: str | None) -> None:
    """Show or change the settings of the key's tenant, or of a project.

    A tenant has settings for dreams, its language model and its limits; a
    project has settings for its context and its dreams.

    Example: reverie admin settings -c dream.turns=40 -c llm=null --project shop
    """
    client = options.gateway()
    path = f"/v1/projects/{quote_segment(project)}/settings" if project else "/v1/admin/settings"
    method, body = ("PATCH", _parse_changes(change)) if change else ("GET", None)
    response = client.request(method, path, body=body)
    options.print_result(response, "\n".join(_format_settings(response)))


def _parse_changes(changes: Sequence[str]) -> dict[str, Any]:
    """The request body of these changes. Raises `InvalidInput`."""
    body: dict[str, Any] = {}
    for change in changes:
        name, equals, text = change.partition("=")
        owner, dot, inner = name.strip().partition(".")
        try:
            value = jsonlib.loads(text)
        except ValueError:
            equals = ""
        if not equals or not owner or (dot and not inner):
            reason = f"expected PART.NAME=NUMBER or PART=null, not {change!r}"
            raise InvalidInput("--change", reason)
        if not dot:
            body[owner] = value
        elif isinstance(body.setdefault(owner, {}), dict):
            body[owner][inner] = value
    return body


def _format_settings(document: JsonObject) -> Iterator[str]:
    for name, value in document.items():
        if not isinstance(value, Mapping):
            yield f"{name:10} {value}"
            continue
        entries = (
            f"{key} {_format_value(setting)}"
            for key, setting in value.items()
            if setting not in ({}, [])
        )
        yield f"{name:10} {', '.join(entries)}"


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{name} {item}" for name, item in value.items()) + ")"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
