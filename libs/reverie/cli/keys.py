"""`reverie key`: who may use this Reverie."""

from __future__ import annotations

from typing import Annotated

import typer

from reverie.cli.common import Home, Json, Sets, out, print_json, settings_from
from reverie.domain.access import Role

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke API keys.")

Label = Annotated[str, typer.Argument(help="What the key is for.")]
RoleOption = Annotated[Role, typer.Option("--role", help="What the key may do.")]
Reads = Annotated[
    list[str] | None, typer.Option("--read", help="A scope, or pattern, it may read; * is all.")
]
Writes = Annotated[
    list[str] | None, typer.Option("--write", help="A scope, or pattern, it may write; * is all.")
]
Project = Annotated[str | None, typer.Option("--project", help="Project it works on by default.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Agent that holds it.")]
Tenant = Annotated[str, typer.Option("--tenant", help="Tenant; made where it is missing.")]


@app.command()
def create(
    label: Label,
    role: RoleOption = Role.WRITER,
    read: Reads = None,
    write: Writes = None,
    project: Project = None,
    agent: Agent = None,
    tenant: Tenant = "default",
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Make a key. Its text is shown this once.

    Without --read and --write it may read and write everything of its tenant, as
    far as its role goes.

    Example: [bold]reverie key create ci --role ci --write 'project/shop/*'[/]
    """
    from reverie.cli.place import admin_url
    from reverie.store.bootstrap import NewKey, create_key

    settings = settings_from(home, sets)
    new = NewKey(label, role, read or ("*",), write or ("*",), project, agent, tenant)
    text = create_key(admin_url(settings), new)
    if json:
        print_json({"key": text, "label": label, "role": role.value, "tenant": tenant})
    else:
        out().print(text, markup=False)


@app.command("list")
def list_keys(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """All keys, without their text.

    Example: [bold]reverie key list --json[/]
    """
    from dataclasses import asdict

    from reverie.cli.place import admin_url
    from reverie.store import bootstrap

    rows = bootstrap.list_keys(admin_url(settings_from(home, sets)))
    if json:
        print_json([asdict(row) for row in rows])
        return
    from rich.table import Table

    table = Table("id", "tenant", "label", "role", "reads", "writes", "created", box=None)
    for row in rows:
        until = f"revoked {row.revoked:%Y-%m-%d}" if row.revoked else f"{row.created:%Y-%m-%d}"
        reads, writes = " ".join(row.reads), " ".join(row.writes)
        table.add_row(row.id[-12:], row.tenant, row.label, row.role, reads, writes, until)
    out().print(table)


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="The id, or its last digits.")],
    home: Home = None,
    sets: Sets = None,
) -> None:
    """End a key at once (services forget it within seconds).

    Example: [bold]reverie key revoke 3fb2a91c04d7[/]

    Exit codes: 0 ok, 4 no such key; the others as `reverie --help` tells.
    """
    from reverie.cli.place import admin_url
    from reverie.store.bootstrap import revoke_key

    revoke_key(admin_url(settings_from(home, sets)), key_id)
    out().print(f"revoked {key_id}", markup=False)
