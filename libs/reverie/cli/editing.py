"""`reverie edit`: changes what is written of a memory."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reverie.cli.asking import desk, part
from reverie.cli.common import Home, Json, Sets
from reverie.cli.options import Id, Reason
from reverie.cli.shown import short, tell
from reverie.domain.errors import Invalid

Content = Annotated[str | None, typer.Option("--content", help="What it says now.")]
Summary = Annotated[str | None, typer.Option("--summary", help="In short; an empty one: none.")]
Kind = Annotated[str | None, typer.Option("--kind", "-k", help="As decision, convention, bug.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="All its tags from now on.")]
NoTags = Annotated[bool, typer.Option("--no-tags", help="No tags from now on.")]
Sure = Annotated[
    float | None, typer.Option("--confidence", min=0, max=1, help="How sure it is, 0 to 1.")
]
Version = Annotated[
    int | None, typer.Option("--version", min=1, help="Only where this version stands.")
]


def edit(
    id: Id,
    content: Content = None,
    summary: Summary = None,
    kind: Kind = None,
    tag: Tags = None,
    no_tags: NoTags = False,
    confidence: Sure = None,
    reason: Reason = None,
    version: Version = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Change what is written of a memory; what it was stays in its history.

    Example: [bold]reverie edit 3fa9c1d2 --kind decision --tag shipping[/]
    """
    changes: dict[str, Any] = {
        "content": content,
        "summary": summary,
        "kind": kind,
        "tags": [] if no_tags else tag,
        "confidence": confidence,
    }
    body = {name: value for name, value in changes.items() if value is not None}
    if not body:
        raise Invalid("edit", "say what: --content, --summary, --kind, --tag or --confidence")
    body |= {"reason": reason} if reason else {}
    done = desk(home, sets).ask("PATCH", f"/v1/memories/{part(id)}", body=body, version=version)
    so = f"version {done['version']} stands" if done["changed"] else "it is so already"
    tell(done, json, f"{short(done['id'])}: {so}")
