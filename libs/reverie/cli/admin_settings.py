"""`reverie admin settings`: what a tenant, or a project, has set for itself."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from reverie.cli.asking import desk, part
from reverie.cli.common import Home, Json, Sets
from reverie.cli.shown import Document, tell
from reverie.domain.errors import Invalid

Project = Annotated[str | None, typer.Option("--project", "-p", help="Of this project alone.")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--change", "-c", metavar="PART[.NAME]=VALUE", help="One setting; null: the default again."
    ),
]


def settings(
    change: Changes = None,
    project: Project = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Show or change what the key's tenant has set: when it dreams, its
    language model, its limits; or a project: its context, when it dreams.

    Example: [bold]reverie admin settings -c dream.turns=40 -c llm=null --project shop[/]
    """
    at = desk(home, sets)
    path = f"/v1/projects/{part(project)}/settings" if project else "/v1/admin/settings"
    found = at.ask("PATCH", path, body=_changes(change)) if change else at.ask("GET", path)
    tell(found, json, "\n".join(_lines(found)))


def _changes(asked: Sequence[str]) -> dict[str, Any]:
    """The body that says them. Raises `Invalid` naming what cannot be read."""
    body: dict[str, Any] = {}
    for one in asked:
        name, equals, text = one.partition("=")
        owner, dot, inner = name.strip().partition(".")
        try:
            value = jsonlib.loads(text)
        except ValueError:
            equals = ""
        if not equals or not owner or (dot and not inner):
            raise Invalid("--change", f"expected PART.NAME=NUMBER or PART=null, not {one!r}")
        if not dot:
            body[owner] = value
        elif isinstance(body.setdefault(owner, {}), dict):
            body[owner][inner] = value
    return body


def _lines(found: Document) -> Iterator[str]:
    for name, value in found.items():
        if not isinstance(value, Mapping):
            yield f"{name:10} {value}"
            continue
        told = ((inner, one) for inner, one in value.items() if one not in ({}, []))
        yield f"{name:10} {', '.join(f'{inner} {_short(one)}' for inner, one in told)}"


def _short(value: object) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{name} {one}" for name, one in value.items()) + ")"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
