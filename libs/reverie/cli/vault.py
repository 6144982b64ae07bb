"""`reverie vault`: the master key of the vault's secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from reverie.cli.common import Home, Json, Sets, err, out, print_json, settings_from

if TYPE_CHECKING:
    from reverie.runtime.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Look after the vault's master key.")


@app.callback()
def vault() -> None:
    """Look after the vault's master key."""


@app.command()
def rotate(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Seal all secret values under the newest master key.

    Put the new key in front (REVERIE_VAULT_KEY=new,old), restart the services, rotate;
    afterwards the old key may be dropped. Without the setting, the keys are those in
    secrets/vault_key of the home folder. May be repeated and broken off.

    Example: [bold]REVERIE_VAULT_KEY=$NEW,$OLD reverie vault rotate[/]

    Exit codes: 0 ok, 1 a key is missing or the database does not answer, 2 usage.
    """
    from reverie.cli.place import admin_url
    from reverie.store.sealing import sealer_of
    from reverie.store.vault_rotation import rotate as seal_anew

    settings = settings_from(home, sets)

    def told(done: int, total: int) -> None:
        err().print(f"{done} of {total}")

    done = seal_anew(admin_url(settings), sealer_of(_keys(settings)), told)
    if json:
        print_json({"rotated": done.values, "key": done.key_id})
    else:
        out().print(f"{done.values} sealed anew; all stand under key {done.key_id}")


def _keys(settings: Settings) -> str | None:
    if settings.vault_key is not None:
        return settings.vault_key.get_secret_value()
    from reverie.embedded.home import existing_home, read_secret

    home = existing_home(settings.home)
    return read_secret(home, "vault_key") if home else None
