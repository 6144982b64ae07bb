"""`reverie admin webhooks`: the secrets that push webhooks of GitHub and GitLab are signed with."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.common import Home, Json, Sets, out, print_json, settings_from
from reverie.domain.errors import Invalid, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reverie.domain.access import Principal
    from reverie.runtime.settings import Settings
    from reverie.store.database import Database
    from reverie.store.hooks import Hook, Hooks

    Work = Callable[[Hooks, Principal], Awaitable[list[Hook]]]

app = typer.Typer(no_args_is_help=True, help="Set up push webhooks of GitHub and GitLab.")

Tenant = Annotated[str, typer.Option("--tenant", help="Whose.")]
Project = Annotated[str, typer.Argument(help="The project.")]
Kind = Annotated[str, typer.Argument(help="github or gitlab.")]


@app.command("set")
def set_webhook(
    project: Project,
    kind: Kind,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the secret from standard input; else one is made.")
    ] = False,
    tenant: Tenant = "default",
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Set the secret of a project's webhook, and show where its deliveries go.

    The secret is shown this once: enter it at the forge. It is sealed under vault_key.

    Example: [bold]reverie admin webhooks set shop github[/]
    """
    import secrets

    secret = sys.stdin.read().strip() if stdin else secrets.token_urlsafe(32)
    name, kind = _named(project, kind)
    if len(secret) < 8 or not secret.isascii() or not secret.isprintable():
        raise Invalid("secret", "must be at least 8 printable ASCII characters")
    settings = settings_from(home, sets)

    async def work(hooks: Hooks, who: Principal) -> list[Hook]:
        if not hooks.seals:
            raise Misconfigured("vault_key", "is not set, and secrets are sealed under it")
        return [await hooks.put(who, name, kind, secret)]

    [made] = _on(settings, tenant, work)
    told = _told(tenant, made) | ({} if stdin else {"secret": secret})
    if json:
        print_json(told)
        return
    for label, value in told.items():
        out().print(f"{label:10} {value}", markup=False)


@app.command("list")
def list_webhooks(
    project: Annotated[str | None, typer.Option("--project", help="Only of this one.")] = None,
    tenant: Tenant = "default",
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Webhooks that are set up, without their secrets.

    Example: [bold]reverie admin webhooks list[/]
    """
    from reverie.domain.scopes import slug

    name = slug(project) if project else None
    found = _on(
        settings_from(home, sets), tenant, lambda hooks, who: hooks.page(who, ["*"], name, 10_000)
    )
    if json:
        print_json([_told(tenant, one) for one in found])
        return
    for one in found:
        path = _told(tenant, one)["path"]
        out().print(f"{one.project:20} {one.kind:8} {path}", markup=False)
    if not found:
        out().print("Nothing there.")


@app.command("remove")
def remove_webhook(
    project: Project,
    kind: Kind,
    tenant: Tenant = "default",
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Refuse deliveries of a project's webhook from now on.

    Example: [bold]reverie admin webhooks remove shop github[/]
    """
    name, kind = _named(project, kind)

    async def work(hooks: Hooks, who: Principal) -> list[Hook]:
        await hooks.delete(who, name, kind)
        return []

    _on(settings_from(home, sets), tenant, work)
    if json:
        print_json({"project": name, "kind": kind})
    else:
        out().print(f"The {kind} webhook of {name} is no more.", markup=False)


def _named(project: str, kind: str) -> tuple[str, str]:
    from reverie.domain.scopes import slug

    if kind not in {"github", "gitlab"}:
        raise Invalid("kind", f"expected github or gitlab, not {kind!r}")
    return slug(project), kind


def _on(settings: Settings, tenant: str, work: Work) -> list[Hook]:
    from reverie.cli.operating import run_on
    from reverie.cli.vault import master_keys
    from reverie.store.hooks import Hooks
    from reverie.store.sealing import sealer_of

    sealer = sealer_of(master_keys(settings))

    async def run(database: Database, who: Principal) -> list[Hook]:
        return await work(Hooks(database, sealer), who)

    return run_on(settings, tenant, run)


def _told(tenant: str, hook: Hook) -> dict[str, str]:
    """What an operator enters at the forge, below the gateway's address."""
    path = f"/v1/git/{hook.kind}/{tenant}/{hook.project}"
    return {"project": hook.project, "kind": hook.kind, "path": path}
