"""`reverie admin webhooks`: manages the signing secrets of GitHub and GitLab webhooks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.app.common import Home, Json, Sets, out, print_json, resolve_settings
from reverie.domain.core.errors import InvalidInput, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reverie.domain.access.principals import Principal
    from reverie.runtime.settings.settings import Settings
    from reverie.store.db.database import Database
    from reverie.store.platform.webhooks import WebhookInfo, WebhookStore

    Work = Callable[[WebhookStore, Principal], Awaitable[list[WebhookInfo]]]

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
    name, kind = _parse_target(project, kind)
    if len(secret) < 8 or not secret.isascii() or not secret.isprintable():
        raise InvalidInput("secret", "must be at least 8 printable ASCII characters")
    settings = resolve_settings(home, sets)

    async def work(hooks: WebhookStore, principal: Principal) -> list[WebhookInfo]:
        if not hooks.can_encrypt:
            raise Misconfigured("vault_key", "is not set, and secrets are sealed under it")
        return [await hooks.put(principal, name, kind, secret)]

    [webhook] = _run_with_webhooks(settings, tenant, work)
    document = _webhook_document(tenant, webhook) | ({} if stdin else {"secret": secret})
    if json:
        print_json(document)
        return
    for label, value in document.items():
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
    from reverie.domain.access.scopes import slugify

    name = slugify(project) if project else None
    items = _run_with_webhooks(
        resolve_settings(home, sets),
        tenant,
        lambda hooks, principal: hooks.page(principal, ["*"], name, 10_000),
    )
    if json:
        print_json([_webhook_document(tenant, webhook) for webhook in items])
        return
    for webhook in items:
        path = _webhook_document(tenant, webhook)["path"]
        out().print(f"{webhook.project:20} {webhook.kind:8} {path}", markup=False)
    if not items:
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
    name, kind = _parse_target(project, kind)

    async def work(hooks: WebhookStore, principal: Principal) -> list[WebhookInfo]:
        await hooks.delete(principal, name, kind)
        return []

    _run_with_webhooks(resolve_settings(home, sets), tenant, work)
    if json:
        print_json({"project": name, "kind": kind})
    else:
        out().print(f"The {kind} webhook of {name} is no more.", markup=False)


def _parse_target(project: str, kind: str) -> tuple[str, str]:
    from reverie.domain.access.scopes import slugify

    if kind not in {"github", "gitlab"}:
        raise InvalidInput("kind", f"expected github or gitlab, not {kind!r}")
    return slugify(project), kind


def _run_with_webhooks(settings: Settings, tenant: str, work: Work) -> list[WebhookInfo]:
    from reverie.cli.app.operator_access import run_for_tenant
    from reverie.cli.memory.vault import load_master_keys
    from reverie.store.platform.encryption import create_cipher
    from reverie.store.platform.webhooks import WebhookStore

    sealer = create_cipher(load_master_keys(settings))

    async def run(database: Database, principal: Principal) -> list[WebhookInfo]:
        return await work(WebhookStore(database, sealer), principal)

    return run_for_tenant(settings, tenant, run)


def _webhook_document(tenant: str, hook: WebhookInfo) -> dict[str, str]:
    """What an operator enters at the forge, below the gateway's address."""
    path = f"/v1/git/{hook.kind}/{tenant}/{hook.project}"
    return {"project": hook.project, "kind": hook.kind, "path": path}
