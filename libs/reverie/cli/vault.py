"""`reverie vault`: entries of the vault through the running gateway, and its master key."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli.asking import desk
from reverie.cli.common import FAILED, Home, Json, Sets, err, out, print_json, settings_from
from reverie.cli.options import Limit
from reverie.domain.errors import Invalid

if TYPE_CHECKING:
    from reverie.runtime.settings import Settings

PAGE = 200

app = typer.Typer(no_args_is_help=True, help="Keep state and secrets beside memory.")

Key = Annotated[str, typer.Argument(help="The entry's key: A-Z a-z 0-9 _ . : -.")]
Scope = Annotated[str | None, typer.Option("--scope", help="Whose; else the key's own.")]
Plain = Annotated[bool, typer.Option("--plain", help="Not sealed: state that is no secret.")]
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
def put(
    key: Key,
    scope: Scope = None,
    plain: Plain = False,
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
    body = {"value": _value(as_json), "secret": not plain, "version": version}
    sent = {name: value for name, value in body.items() if value is not None}
    done = desk(home, sets).ask("PUT", _path(key), _query(scope), sent)
    if json:
        print_json(done)
        return
    sealed = "sealed" if done["secret"] else "plain"
    told = f"{done['key']} in {done['scope']}: version {done['version']}, {sealed}"
    out().print(told, markup=False)
    for hint in done["hints"]:
        err().print(hint, markup=False)


@app.command("get")
def get(
    key: Key, scope: Scope = None, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Print a value: a text as it is, anything else as JSON.

    Example: [bold]reverie vault get deploy_token[/]
    """
    found = desk(home, sets).ask("GET", _path(key), _query(scope))
    if json:
        print_json(found)
        return
    value = found["value"]
    typer.echo(value if isinstance(value, str) else jsonlib.dumps(value, ensure_ascii=False))


@app.command("list")
def list_entries(
    scope: Scope = None,
    limit: Limit = PAGE,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Entries without their values.

    Example: [bold]reverie vault list --scope project/shop[/]
    """
    found = desk(home, sets).pages("/v1/vault", _query(scope), limit)
    columns = ("scope", "key", "version", "secret", "readable", "updated_at")
    _show(found, columns, json)


@app.command("delete")
def delete(
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
    done = desk(home, sets).ask("DELETE", _path(key), _query(scope))
    if json:
        print_json(done)
    else:
        out().print(f"{done['key']} in {done['scope']} is gone", markup=False)


@app.command("advice")
def advice(limit: Limit = PAGE, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Memories that are state and belong here: busy keys, counters, JSON blobs.

    Example: [bold]reverie vault advice[/]
    """
    found = desk(home, sets).pages("/v1/vault/advice", {}, limit)
    _show(found, ("scope", "key", "memory", "versions"), json)


@app.command("scrub")
def scrub(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """How far texts that were stored earlier have been searched for secrets.

    Example: [bold]reverie vault scrub[/]
    """
    found = desk(home, sets).ask("GET", "/v1/vault/scrub", {})
    if json:
        print_json(found)
    else:
        out().print(f"{found['state']}: {found['looked']} rows read, {found['scrubbed']} scrubbed")


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
    from reverie.cli.place import admin_url
    from reverie.store.sealing import sealer_of
    from reverie.store.vault_rotation import rotate as seal_anew

    settings = settings_from(home, sets)

    def told(done: int, total: int) -> None:
        err().print(f"{done} of {total}")

    done = seal_anew(admin_url(settings), sealer_of(master_keys(settings)), told)
    if json:
        print_json(
            {"rotated": done.values, "key": done.key_id, "lost": [vars(o) for o in done.lost]}
        )
    else:
        out().print(f"{done.values} sealed anew under key {done.key_id}")
    for one in done.lost:
        place = f"{one.key} in {one.scope} of tenant {one.tenant}"
        err().print(f"{place} cannot be opened: put it again or delete it", markup=False)
    if done.lost:
        raise typer.Exit(FAILED)


def master_keys(settings: Settings) -> str | None:
    """The master keys of these settings, or of the home folder; None where there are none."""
    if settings.vault_key is not None:
        return settings.vault_key.get_secret_value()
    from reverie.embedded.home import existing_home, read_secret

    home = existing_home(settings.home)
    return read_secret(home, "vault_key") if home else None


def _value(as_json: bool) -> Any:
    """The value from standard input without its last line end, or asked for."""
    asked = sys.stdin.isatty()
    text = typer.prompt("Value", hide_input=True, err=True) if asked else sys.stdin.read()
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise Invalid("value", "is empty: give it on standard input")
    if not as_json:
        return text
    try:
        return jsonlib.loads(text)
    except ValueError:
        raise Invalid("value", "is not JSON: leave out --as-json for a text") from None


def _path(key: str) -> str:
    from urllib.parse import quote

    return f"/v1/vault/{quote(key, safe='')}"


def _query(scope: str | None) -> dict[str, str]:
    return {"scope": scope} if scope else {}


def _show(found: Sequence[dict[str, Any]], columns: Sequence[str], json: bool) -> None:
    if json:
        print_json(list(found))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=None)
    for one in found:
        table.add_row(*(Text("" if one[name] is None else str(one[name])) for name in columns))
    out().print(table if found else "Nothing there.")
