"""`reverie vault`: entries of the vault through the gateway, and rotation of its master key."""

from __future__ import annotations

import json as jsonlib
import sys
from typing import Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP, FAILED
from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    drop_unset,
    limit_option,
    yes_option,
)
from reverie.cli.app.output import (
    Columns,
    age_cell,
    confirm,
    err,
    plural,
    print_exact,
    print_json,
    print_warnings,
)
from reverie.domain.core.errors import InvalidInput

app = click.Group(
    "vault",
    help="Store state and secrets, and manage the master key.\n\n"
    "Example: pass deploy/token | reverie vault set deploy_token",
    epilog=EXIT_CODES_HELP,
)


key_argument = click.argument("key", help="The entry's key: A-Z a-z 0-9 _ . : -.")
vault_scope_option = click.option("--scope", help="The scope; default: the scope of the key.")


@app.command("set")
@key_argument
@vault_scope_option
@click.option(
    "--plain", is_flag=True, help="Store the value unencrypted, for state that is no secret."
)
@click.option("--as-json", is_flag=True, help="Parse the value as JSON.")
@click.option(
    "--version",
    type=click.IntRange(min=0),
    help="The expected current version; 0 if there is none.",
)
@common_options
def set_entry(
    options: CommonOptions,
    key: str,
    scope: str | None,
    plain: bool,
    as_json: bool,
    version: int | None,
) -> None:
    """Store a value, encrypted unless --plain is given.

    The value is read from standard input, or from a prompt. It is never an
    argument, because other users can see arguments.

    Example: pass deploy/token | reverie vault set deploy_token --scope project/shop
    """
    body = {"value": _read_value(as_json), "secret": not plain, "version": version}
    response = options.gateway().request(
        "PUT", f"/v1/vault/{quote_segment(key)}", {"scope": scope}, drop_unset(body)
    )
    if not options.json:
        print_warnings(response["hints"])
    state = "encrypted" if response["secret"] else "plain"
    message = f"{response['key']} in {response['scope']}: version {response['version']}, {state}"
    options.print_result(response, message)


@app.command("get")
@key_argument
@vault_scope_option
@common_options
def get_entry(options: CommonOptions, key: str, scope: str | None) -> None:
    """Print a value: text as it is, other values as JSON.

    Example: reverie vault get deploy_token
    """
    response = options.gateway().request("GET", f"/v1/vault/{quote_segment(key)}", {"scope": scope})
    if options.json:
        print_json(response)
        return
    value = response["value"]
    print_exact(value if isinstance(value, str) else jsonlib.dumps(value, ensure_ascii=False))


@app.command("list")
@vault_scope_option
@limit_option(200)
@common_options
def list_entries(options: CommonOptions, scope: str | None, limit: int) -> None:
    """List entries without their values.

    Example: reverie vault list --scope project/shop
    """
    items = options.gateway().list_items("/v1/vault", {"scope": scope}, limit)
    columns: Columns = {name: name for name in ("scope", "key", "version")} | {
        "secret": lambda item: "yes" if item["secret"] else "no",
        "readable": lambda item: "yes" if item["readable"] else "no",
        "updated": age_cell("updated_at"),
    }
    options.print_table(items, columns)


@app.command("delete")
@key_argument
@vault_scope_option
@click.option(
    "--restore",
    is_flag=True,
    help="Put its values back where redaction took them out of texts. For administrators.",
)
@yes_option
@common_options
def delete_entry(
    options: CommonOptions, key: str, scope: str | None, restore: bool, yes: bool
) -> None:
    """Delete an entry, even if its master key is lost.

    Example: reverie vault delete deploy_token --yes
    """
    if not yes:
        confirm(f"Delete {key} for good?")
    response = options.gateway().request(
        "DELETE",
        f"/v1/vault/{quote_segment(key)}",
        {"scope": scope, "restore": "true" if restore else None},
    )
    options.print_result(response, f"deleted {response['key']} in {response['scope']}")


@app.command("suggestions")
@limit_option(200)
@common_options
def list_suggestions(options: CommonOptions, limit: int) -> None:
    """List memories that belong in the vault: keys written often, counters, JSON.

    Example: reverie vault suggestions
    """
    items = options.gateway().list_items("/v1/vault/suggestions", {}, limit)
    columns = ("scope", "key", "memory", "versions")
    options.print_table(items, {name: name for name in columns})


@app.command("redaction-status")
@common_options
def show_redaction_status(options: CommonOptions) -> None:
    """Show how much of the stored text has been searched for secrets.

    Example: reverie vault redaction-status
    """
    response = options.gateway().request("GET", "/v1/vault/redaction-status", {})
    counts = (
        f": {plural(response['examined'], 'row')} searched, {response['redacted']} redacted"
        if response["redacted"] is not None
        else ""
    )
    options.print_result(response, response["state"] + counts)


@app.command("rotate")
@common_options
def rotate(options: CommonOptions) -> None:
    """Encrypt all secret values with the newest master key.

    Put the new key first (REVERIE_VAULT_KEY=new,old), restart the services,
    and rotate; then the old key can be removed. Without that setting, the keys
    in secrets/vault_key of the home folder are used. The command can be
    interrupted and repeated. Entries that no key decrypts are listed and left
    unchanged.

    Example: REVERIE_VAULT_KEY=$NEW,$OLD reverie vault rotate

    Exit codes: 0 ok, 1 an entry could not be decrypted, 2 usage, 3 the database
    does not answer.
    """
    from reverie.cli.app.operator_access import load_master_keys, resolve_database_url
    from reverie.store.db.encryption import create_cipher
    from reverie.store.vault.vault_key_rotation import reencrypt_secrets

    settings = options.settings()
    result = reencrypt_secrets(
        resolve_database_url(settings),
        create_cipher(load_master_keys(settings)),
        lambda count, total: err().print(f"{count} of {total}"),
    )
    undecryptable = [vars(entry) for entry in result.unreadable]
    options.print_result(
        {"rotated": result.count, "key": result.key_id, "undecryptable": undecryptable},
        f"encrypted {plural(result.count, 'value')} with key {result.key_id}",
    )
    for entry in result.unreadable:
        label = f"{entry.key} in {entry.scope} of tenant {entry.tenant}"
        err().print(f"{label} cannot be decrypted: set it again or delete it", markup=False)
    if result.unreadable:
        raise click.exceptions.Exit(FAILED)


def _read_value(as_json: bool) -> Any:
    """The value from standard input, without its last line break, or from a prompt."""
    is_terminal = sys.stdin.isatty()
    text = click.prompt("Value", hide_input=True, err=True) if is_terminal else sys.stdin.read()
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise InvalidInput("value", "is empty: give it on standard input")
    if not as_json:
        return text
    try:
        return jsonlib.loads(text)
    except ValueError:
        raise InvalidInput("value", "is not JSON: omit --as-json for a text") from None
