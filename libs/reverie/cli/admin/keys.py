"""`reverie key`: creates, lists, rotates, limits and revokes API keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.gateway_settings import parse_assignments
from reverie.cli.app.operator_access import resolve_database_url
from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import Columns, JsonObject
from reverie.domain.core.errors import InvalidInput

limits_option = click.option(
    "--limit", multiple=True, metavar="NAME=NUMBER", help="A limit; may be repeated."
)
key_id_argument = click.argument("key_id", help="The id, or its last digits.")
expires_option = click.option("--expires", help="The expiry: 12h, 30d, 2027-01-31 or never.")

app = click.Group(
    "key", help="Create, list, rotate, limit and revoke API keys.", epilog=EXIT_CODES_HELP
)


@app.command("create")
@click.argument("label", help="The purpose of the key.")
@click.option(
    "--role",
    type=click.Choice(["reader", "writer", "ci", "admin"]),
    default="writer",
    help="The role, which limits what the key may do.",
)
@click.option("--read", multiple=True, help="A scope or pattern that the key may read; * for all.")
@click.option(
    "--write", multiple=True, help="A scope or pattern that the key may write; * for all."
)
@click.option("--project", help="The default project of the key.")
@click.option("--agent", help="The agent that uses the key.")
@click.option(
    "--user", help="The person who uses the key; it reaches no other person's own memory."
)
@click.option("--tenant", default="default", help="The tenant; it is created if it does not exist.")
@expires_option
@limits_option
@common_options
def create(
    options: CommonOptions,
    role: str,
    read: tuple[str, ...],
    write: tuple[str, ...],
    expires: str | None,
    limit: tuple[str, ...],
    **fields: Any,
) -> None:
    """Create a key. Its text is shown only once.

    Without --read and --write, the key may read and write everything of its
    tenant that its role allows. If only one of them is given, it stands for both.

    Example: reverie key create ci --role ci --write 'project/shop/*'
    """
    from reverie.domain.access.principals import KeyRole
    from reverie.domain.access.scopes import complete_grants
    from reverie.store.platform.api_keys import NewApiKey, create_key

    reads, writes = complete_grants(read or None, write or None)
    request = NewApiKey(
        **fields,
        role=KeyRole(role),
        reads=reads,
        writes=writes,
        expires_at=parse_expiry(expires),
        limits=parse_limits(limit),
    )
    text = create_key(resolve_database_url(options.settings()), request)
    result = {"key": text, "label": request.label, "role": role, "tenant": request.tenant}
    options.print_result(result, text)


@app.command("list")
@common_options
def list_keys(options: CommonOptions) -> None:
    """List all keys without their text.

    Example: reverie key list --json
    """
    from dataclasses import asdict

    from reverie.store.platform import api_keys

    rows = api_keys.list_keys(resolve_database_url(options.settings()))
    options.print_table([asdict(row) for row in rows], _KEY_COLUMNS)


def _format_state(row: JsonObject) -> str:
    created, expires, revoked = row["created"], row["expires_at"], row["revoked"]
    if revoked:
        return f"revoked {revoked:%Y-%m-%d}"
    if expires and expires <= datetime.now(UTC):
        return f"expired {expires:%Y-%m-%d}"
    return f"since {created:%Y-%m-%d}" + (f", until {expires:%Y-%m-%d}" if expires else "")


_KEY_COLUMNS: Columns = {
    "id": lambda row: row["id"][-12:],
    "tenant": "tenant",
    "label": "label",
    "role": "role",
    "reads": lambda row: "\n".join(row["reads"]),
    "writes": lambda row: "\n".join(row["writes"]),
    "limits": lambda row: "\n".join(f"{name}={n}" for name, n in row["limits"].items()),
    "state": _format_state,
}


@app.command("show")
@click.argument("key_id", help="The full id.")
@common_options
def show(options: CommonOptions, key_id: str) -> None:
    """Show a key of the tenant: its rights, limits and usage.

    Example: reverie key show 019c2f6e-8d4b-7c31-9a7e-3fa9c1d20b55
    """
    response = options.gateway().request("GET", f"/v1/admin/keys/{quote_segment(key_id)}")
    fields = {name: value for name, value in response.items() if value not in (None, [], {})}
    options.print_result(
        response, "\n".join(f"{name:12} {value}" for name, value in fields.items())
    )


@app.command("revoke")
@key_id_argument
@common_options
def revoke(options: CommonOptions, key_id: str) -> None:
    """Revoke a key; services reject it within seconds.

    Example: reverie key revoke 3fb2a91c04d7

    Exit codes: 0 ok, 4 no such key; for the others see `reverie --help`.
    """
    from reverie.store.platform.api_keys import revoke_key

    revoke_key(resolve_database_url(options.settings()), key_id)
    options.print_result({"id": key_id, "revoked": True}, f"revoked {key_id}")


@app.command("rotate")
@key_id_argument
@click.option(
    "--overlap", default="1h", help="How long the old key text stays valid: 0s, 1h or 7d."
)
@common_options
def rotate(options: CommonOptions, key_id: str, overlap: str) -> None:
    """Replace the text of a key. The new text is shown only once.

    If the old text is the one that the home folder stores for the commands of
    this machine, the new one replaces it there.

    Example: reverie key rotate 3fb2a91c04d7 --overlap 24h

    Exit codes: 0 ok, 4 no such key, 6 it was revoked; for the others see `reverie --help`.
    """
    from reverie.embedded.home import existing_home, read_secret, write_secret
    from reverie.embedded.servers.backends import API_KEY_SECRET
    from reverie.store.platform.api_keys import find_key, find_key_id, rotate_key

    seconds, settings = parse_duration("--overlap", overlap), options.settings()
    url, home = resolve_database_url(settings), existing_home(settings.home)
    stored = read_secret(home, API_KEY_SECRET) if home else None
    is_stored = stored is not None and find_key(url, key_id).id == find_key_id(url, stored)
    text = rotate_key(url, key_id, seconds)
    if home and is_stored:
        write_secret(home, API_KEY_SECRET, text)
    options.print_result({"key": text, "overlap_seconds": seconds}, text)


@app.command("change")
@key_id_argument
@expires_option
@limits_option
@common_options
def change(
    options: CommonOptions, key_id: str, expires: str | None, limit: tuple[str, ...]
) -> None:
    """Change the expiry or the limits of a key.

    Limits: requests_per_minute, requests_per_day, memories_per_day, bytes_per_day,
    llm_tokens_per_day. `--limit none` removes all limits, `--expires never` the
    expiry. The given limits replace the earlier ones.

    Example: reverie key change 3fb2a91c04d7 --limit requests_per_minute=600 --expires 90d

    Exit codes: 0 ok, 4 no such key; for the others see `reverie --help`.
    """
    from reverie.store.platform.api_keys import update_key

    changes: dict[str, object] = {}
    if expires is not None:
        changes["expires_at"] = parse_expiry(expires)
    if limit:
        changes["limits"] = parse_limits(limit)
    if not changes:
        raise InvalidInput("--limit", "give --limit or --expires")
    update_key(resolve_database_url(options.settings()), key_id, changes)
    options.print_result({"id": key_id, **changes}, f"changed {key_id}")


def parse_duration(option: str, text: str) -> float:
    """Seconds of `90s`, `15m`, `12h`, `30d`. Raises `InvalidInput`."""

    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not number.isdecimal():
        raise InvalidInput(option, f"expected a time as 90s, 15m, 12h or 30d, not {text!r}")
    return int(number) * units[unit]


def parse_expiry(text: str | None) -> datetime | None:
    """Parses an expiry, a duration from now or a date; None for `never`. Raises `InvalidInput`."""
    return None if text is None or text == "never" else parse_time("--expires", text, sign=1)


def parse_time(option: str, text: str, sign: int) -> datetime:
    """A date, or now plus (`sign` 1) or minus (-1) a duration. Raises `InvalidInput`."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) + sign * timedelta(seconds=parse_duration(option, text))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parse_limits(values: Sequence[str]) -> dict[str, int]:
    """Parses limits given as `NAME=NUMBER`; no limits for `none`. Raises `InvalidInput`."""
    from reverie.domain.access.principals import LIMIT_NAMES

    parsed = parse_assignments([value for value in values if value != "none"])
    for name, number in parsed.items():
        if name not in LIMIT_NAMES:
            raise InvalidInput("--limit", f"{name} is not one of {', '.join(LIMIT_NAMES)}")
        if not number.isdecimal() or not int(number):
            raise InvalidInput("--limit", f"{name} must be a number above 0, not {number!r}")
    return {name: int(number) for name, number in parsed.items()}
