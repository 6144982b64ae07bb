"""Options and arguments that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Id = Annotated[str, typer.Argument(help="A memory's id; its last eight digits will do.")]
Project = Annotated[
    str | None,
    typer.Option("--project", "-p", help="Default: the project of this folder (reverie.toml)."),
]
Scope = Annotated[str | None, typer.Option("--scope", help="As project/shop or global.")]
Session = Annotated[str | None, typer.Option("--session", help="A session's id, also short.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Kept with the version.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Default: the key's.")]
Depth = Annotated[int, typer.Option("--depth", min=1, max=5, help="How many edges far.")]
