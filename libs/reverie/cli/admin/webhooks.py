"""`reverie admin webhooks`: manages the signing secrets of GitHub and GitLab webhooks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.options import common_options, resolve_settings, tenant_option
from reverie.cli.app.output import out, print_json
from reverie.domain.core.errors import InvalidInput, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reverie.domain.access.principals import Principal
    from reverie.runtime.settings.settings import Settings
    from reverie.store.db.database import Database
    from reverie.store.platform.webhooks import WebhookInfo, WebhookStore

    Work = Callable[[WebhookStore, Principal], Awaitable[list[WebhookInfo]]]

app = click.Group(
    "webhooks", help="Manage push webhooks of GitHub and GitLab.", epilog=EXIT_CODES_HELP
)


@app.command("set")
@click.argument("project", help="The project.")
@click.argument("kind", help="The forge: github or gitlab.")
@click.option(
    "--stdin", is_flag=True, help="Read the secret from standard input; default: generate one."
)
@tenant_option
@common_options
def set_webhook(
    project: str,
    kind: str,
    stdin: bool,
    tenant: str,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Set the secret of a project's webhook, and show the webhook's path.

    The secret is shown only once: enter it at the forge. It is encrypted with vault_key.

    Example: reverie admin webhooks set shop github
    """
    import secrets

    secret = sys.stdin.read().strip() if stdin else secrets.token_urlsafe(32)
    name, kind = _parse_target(project, kind)
    if len(secret) < 8 or not secret.isascii() or not secret.isprintable():
        raise InvalidInput("secret", "must be at least 8 printable ASCII characters")
    settings = resolve_settings(home, sets)

    async def work(hooks: WebhookStore, principal: Principal) -> list[WebhookInfo]:
        if not hooks.can_encrypt:
            raise Misconfigured("vault_key", "is not set, but secrets are encrypted with it")
        return [await hooks.put(principal, name, kind, secret)]

    [webhook] = _run_with_webhooks(settings, tenant, work)
    document = _webhook_document(tenant, webhook) | ({} if stdin else {"secret": secret})
    if json:
        print_json(document)
        return
    for label, value in document.items():
        out().print(f"{label:10} {value}", markup=False)


@app.command("list")
@click.option("--project", help="Only webhooks of this project.")
@tenant_option
@common_options
def list_webhooks(
    project: str | None, tenant: str, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """List webhooks without their secrets.

    Example: reverie admin webhooks list
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
        out().print("No results.")


@app.command("remove")
@click.argument("project", help="The project.")
@click.argument("kind", help="The forge: github or gitlab.")
@tenant_option
@common_options
def remove_webhook(
    project: str, kind: str, tenant: str, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Remove a project's webhook; its deliveries are refused.

    Example: reverie admin webhooks remove shop github
    """
    name, kind = _parse_target(project, kind)

    async def work(hooks: WebhookStore, principal: Principal) -> list[WebhookInfo]:
        await hooks.delete(principal, name, kind)
        return []

    _run_with_webhooks(resolve_settings(home, sets), tenant, work)
    if json:
        print_json({"project": name, "kind": kind})
    else:
        out().print(f"Removed the {kind} webhook of {name}.", markup=False)


def _parse_target(project: str, kind: str) -> tuple[str, str]:
    from reverie.domain.access.scopes import slugify

    if kind not in {"github", "gitlab"}:
        raise InvalidInput("kind", f"expected github or gitlab, not {kind!r}")
    return slugify(project), kind


def _run_with_webhooks(settings: Settings, tenant: str, work: Work) -> list[WebhookInfo]:
    from reverie.cli.app.operator_access import load_master_keys, run_for_tenant
    from reverie.store.platform.encryption import create_cipher
    from reverie.store.platform.webhooks import WebhookStore

    sealer = create_cipher(load_master_keys(settings))

    async def run(database: Database, principal: Principal) -> list[WebhookInfo]:
        return await work(WebhookStore(database, sealer), principal)

    return run_for_tenant(settings, tenant, run)


def _webhook_document(tenant: str, hook: WebhookInfo) -> dict[str, str]:
    """The webhook, with the path to enter at the forge after the gateway's URL."""
    path = f"/v1/git/{hook.kind}/{tenant}/{hook.project}"
    return {"project": hook.project, "kind": hook.kind, "path": path}
