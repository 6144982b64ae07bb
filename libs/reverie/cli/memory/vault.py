"""`reverie vault`: entries of the vault through the gateway, and rotation of its master key."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.app.common import (
    FAILED,
    Home,
    Json,
    Limit,
    Sets,
    err,
    out,
    print_json,
    resolve_settings,
)
from reverie.cli.app.gateway_client import create_client
from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
    from reverie.runtime.settings.settings import Settings

PAGE_SIZE = 200

app = typer.Typer(no_args_is_help=True, help="Keep state and secrets beside memory.")

Key = Annotated[str, typer.Argument(help="The entry's key: A-Z a-z 0-9 _ . : -.")]
Scope = Annotated[str | None, typer.Option("--scope", help="Whose; else the key's own.")]
PlainOption = Annotated[bool, typer.Option("--plain", help="Not sealed: state that is no secret.")]
AsJson = Annotated[bool, typer.Option("--as-json", help="The value is JSON, not a text.")]
Version = Annotated[
    int | None, typer.Option("--version", min=0, help="What must stand there now; 0: nothing.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.callback()
def vault() -> None:
    """Keep state and secrets beside memory; look after the master key.

    Example: [bold]reverie vault set deploy_token < token.txt[/]
    """


@app.command("set")
def set_entry(
    key: Key,
    scope: Scope = None,
    plain: PlainOption = False,
    as_json: AsJson = False,
    version: Version = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Keep a value under a key, sealed unless --plain.

    It is read from standard input, or asked for on a terminal: never from the
    command line, which others can see.

    Example: [bold]pass deploy/token | reverie vault set deploy_token --scope project/shop[/]
    """
    body = {"value": _read_value(as_json), "secret": not plain, "version": version}
    payload = {name: value for name, value in body.items() if value is not None}
    response = create_client(home, sets).request(
        "PUT", _entry_path(key), _scope_query(scope), payload
    )
    if json:
        print_json(response)
        return
    sealed = "sealed" if response["secret"] else "plain"
    message = f"{response['key']} in {response['scope']}: version {response['version']}, {sealed}"
    out().print(message, markup=False)
    for hint in response["hints"]:
        err().print(hint, markup=False)


@app.command("get")
def get_entry(
    key: Key, scope: Scope = None, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Print a value: a text as it is, anything else as JSON.

    Example: [bold]reverie vault get deploy_token[/]
    """
    response = create_client(home, sets).request("GET", _entry_path(key), _scope_query(scope))
    if json:
        print_json(response)
        return
    value = response["value"]
    typer.echo(value if isinstance(value, str) else jsonlib.dumps(value, ensure_ascii=False))


@app.command("list")
def list_entries(
    scope: Scope = None,
    limit: Limit = PAGE_SIZE,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Entries without their values.

    Example: [bold]reverie vault list --scope project/shop[/]
    """
    items = create_client(home, sets).list_items("/v1/vault", _scope_query(scope), limit)
    columns = ("scope", "key", "version", "secret", "readable", "updated_at")
    _print_rows(items, columns, json)


@app.command("delete")
def delete_entry(
    key: Key,
    scope: Scope = None,
    yes: Yes = False,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Remove an entry for good, also one whose master key is lost.

    Example: [bold]reverie vault delete deploy_token --yes[/]
    """
    if not yes:
        typer.confirm(f"Delete {key}, for ever?", abort=True, err=True)
    response = create_client(home, sets).request("DELETE", _entry_path(key), _scope_query(scope))
    if json:
        print_json(response)
    else:
        out().print(f"{response['key']} in {response['scope']} is gone", markup=False)


@app.command("advice")
def list_advice(
    limit: Limit = PAGE_SIZE, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Memories that are state and belong here: busy keys, counters, JSON blobs.

    Example: [bold]reverie vault advice[/]
    """
    items = create_client(home, sets).list_items("/v1/vault/advice", {}, limit)
    _print_rows(items, ("scope", "key", "memory", "versions"), json)


@app.command("scrub")
def show_scrub_progress(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """How far texts that were stored earlier have been searched for secrets.

    Example: [bold]reverie vault scrub[/]
    """
    response = create_client(home, sets).request("GET", "/v1/vault/scrub", {})
    if json:
        print_json(response)
    else:
        out().print(
            f"{response['state']}: {response['looked']} rows read, {response['scrubbed']} scrubbed"
        )


@app.command()
def rotate(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Seal all secret values under the newest master key.

    Put the new key in front (REVERIE_VAULT_KEY=new,old), restart the
    services, rotate; afterwards the old key may be dropped. Without the
    setting, the keys are those in secrets/vault_key of the home folder. May
    be repeated and broken off. Entries that no key opens are left as they
    are and named.

    Example: [bold]REVERIE_VAULT_KEY=$NEW,$OLD reverie vault rotate[/]

    Exit codes: 0 ok, 1 an entry could not be opened, 2 usage, 3 the
    database does not answer.
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform.encryption import create_cipher
    from reverie.store.platform.vault_key_rotation import rotate_master_key as seal_anew

    settings = resolve_settings(home, sets)

    def told(done: int, total: int) -> None:
        err().print(f"{done} of {total}")

    done = seal_anew(
        resolve_database_url(settings), create_cipher(load_master_keys(settings)), told
    )
    if json:
        print_json(
            {"rotated": done.count, "key": done.key_id, "lost": [vars(o) for o in done.unreadable]}
        )
    else:
        out().print(f"{done.count} sealed anew under key {done.key_id}")
    for entry in done.unreadable:
        label = f"{entry.key} in {entry.scope} of tenant {entry.tenant}"
        err().print(f"{label} cannot be opened: put it again or delete it", markup=False)
    if done.unreadable:
        raise typer.Exit(FAILED)


def load_master_keys(settings: Settings) -> str | None:
    """The master keys of these settings, or of the home folder; None where there are none."""
    if settings.vault_key is not None:
        return settings.vault_key.get_secret_value()
    from reverie.embedded.home import existing_home, read_secret

    home = existing_home(settings.home)
    return read_secret(home, "vault_key") if home else None


def _read_value(as_json: bool) -> Any:
    """The value from standard input without its last line end, or asked for."""
    is_terminal = sys.stdin.isatty()
    text = typer.prompt("Value", hide_input=True, err=True) if is_terminal else sys.stdin.read()
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise InvalidInput("value", "is empty: give it on standard input")
    if not as_json:
        return text
    try:
        return jsonlib.loads(text)
    except ValueError:
        raise InvalidInput("value", "is not JSON: leave out --as-json for a text") from None


def _entry_path(key: str) -> str:
    from urllib.parse import quote

    return f"/v1/vault/{quote(key, safe='')}"


def _scope_query(scope: str | None) -> dict[str, str]:
    return {"scope": scope} if scope else {}


def _print_rows(rows: Sequence[dict[str, Any]], columns: Sequence[str], json: bool) -> None:
    if json:
        print_json(list(rows))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=None)
    for row in rows:
        table.add_row(*(Text("" if row[name] is None else str(row[name])) for name in columns))
    out().print(table if rows else "Nothing there.")
