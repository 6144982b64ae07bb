"""`reverie admin webhooks`: manages the signing secrets of GitHub and GitLab webhooks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.options import CommonOptions, Function, common_options, tenant_option
from reverie.domain.core.errors import InvalidInput, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reverie.domain.access.principals import Principal
    from reverie.store.db.database import Database
    from reverie.store.platform.webhooks import WebhookInfo, WebhookStore

    Work = Callable[[WebhookStore, Principal], Awaitable[list[WebhookInfo]]]

app = click.Group(
    "webhooks", help="Manage push webhooks of GitHub and GitLab.", epilog=EXIT_CODES_HELP
)


def _target_arguments(function: Function) -> Function:
    kind = click.argument(
        "kind", type=click.Choice(["github", "gitlab"]), help="The forge: github or gitlab."
    )
    return click.argument("project", help="The project.")(kind(function))


@app.command("set")
@_target_arguments
@click.option(
    "--stdin", is_flag=True, help="Read the secret from standard input; default: generate one."
)
@tenant_option
@common_options
def set_webhook(options: CommonOptions, project: str, kind: str, stdin: bool, tenant: str) -> None:
    """Set the secret of a project's webhook, and show the webhook's path.

    The secret is shown only once: enter it at the forge. It is encrypted with vault_key.

    Example: reverie admin webhooks set shop github
    """
    import secrets

    from reverie.domain.access.scopes import slugify

    secret = sys.stdin.read().strip() if stdin else secrets.token_urlsafe(32)
    if len(secret) < 8 or not secret.isascii() or not secret.isprintable():
        raise InvalidInput("secret", "must be at least 8 printable ASCII characters")

    async def work(hooks: WebhookStore, principal: Principal) -> list[WebhookInfo]:
        if not hooks.can_encrypt:
            raise Misconfigured("vault_key", "is not set, but secrets are encrypted with it")
        return [await hooks.put(principal, slugify(project), kind, secret)]

    [document] = _run_with_webhooks(options, tenant, work)
    document |= {} if stdin else {"secret": secret}
    lines = (f"{label:10} {value}" for label, value in document.items())
    options.print_result(document, *lines)


@app.command("list")
@click.option("--project", help="Only webhooks of this project.")
@tenant_option
@common_options
def list_webhooks(options: CommonOptions, project: str | None, tenant: str) -> None:
    """List webhooks without their secrets.

    Example: reverie admin webhooks list
    """
    from reverie.domain.access.scopes import slugify

    name = slugify(project) if project else None
    items = _run_with_webhooks(
        options, tenant, lambda hooks, principal: hooks.page(principal, ["*"], name, 10_000)
    )
    options.print_table(items, {"project": "project", "kind": "kind", "path": "path"})


@app.command("remove")
@_target_arguments
@tenant_option
@common_options
def delete_webhook(options: CommonOptions, project: str, kind: str, tenant: str) -> None:
    """Remove a project's webhook; its deliveries are refused.

    Example: reverie admin webhooks remove shop github
    """
    from reverie.domain.access.scopes import slugify

    name = slugify(project)

    async def work(hooks: WebhookStore, principal: Principal) -> list[WebhookInfo]:
        await hooks.delete(principal, name, kind)
        return []

    _run_with_webhooks(options, tenant, work)
    options.print_result({"project": name, "kind": kind}, f"removed the {kind} webhook of {name}")


def _run_with_webhooks(options: CommonOptions, tenant: str, work: Work) -> list[dict[str, str]]:
    """The webhooks that `work` returns, each with the path to enter at the forge."""
    from reverie.cli.app.operator_access import load_master_keys, run_for_tenant
    from reverie.store.db.encryption import create_cipher
    from reverie.store.platform.webhooks import WebhookStore

    settings = options.settings()
    cipher = create_cipher(load_master_keys(settings))

    async def run(database: Database, principal: Principal) -> list[WebhookInfo]:
        return await work(WebhookStore(database, cipher), principal)

    return [
        {
            "project": hook.project,
            "kind": hook.kind,
            "path": f"/v1/git/{hook.kind}/{tenant}/{hook.project}",
        }
        for hook in run_for_tenant(settings, tenant, run)
    ]
