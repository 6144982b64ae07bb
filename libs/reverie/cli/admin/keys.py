"""`reverie key`: creates, lists, rotates, limits and revokes API keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.options import common_options, resolve_settings
from reverie.cli.app.output import out, print_json

if TYPE_CHECKING:
    from reverie.store.platform.api_keys import TenantApiKey

limits_option = click.option(
    "--limit", multiple=True, metavar="NAME=NUMBER", help="A limit; may be repeated."
)

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
@click.option("--tenant", default="default", help="The tenant; it is created if it does not exist.")
@click.option("--expires", help="The expiry: 12h, 30d, 2027-01-31 or never.")
@limits_option
@common_options
def create(
    label: str,
    role: str,
    read: tuple[str, ...],
    write: tuple[str, ...],
    project: str | None,
    agent: str | None,
    tenant: str,
    expires: str | None,
    limit: tuple[str, ...],
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Create a key. Its text is shown only once.

    Without --read and --write, the key may read and write everything of its
    tenant that its role allows.

    Example: reverie key create ci --role ci --write 'project/shop/*'
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.domain.access.principals import KeyRole
    from reverie.store.platform.api_keys import NewApiKey, create_key

    settings = resolve_settings(home, sets)
    restrictions = parse_expiry(expires), parse_limits(limit)
    request = NewApiKey(
        label, KeyRole(role), read or ("*",), write or ("*",), project, agent, tenant, *restrictions
    )
    text = create_key(resolve_database_url(settings), request)
    if json:
        print_json({"key": text, "label": label, "role": role, "tenant": tenant})
    else:
        out().print(text, markup=False)


@app.command("list")
@common_options
def list_keys(home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """List all keys without their text.

    Example: reverie key list --json
    """
    from dataclasses import asdict

    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform import api_keys

    rows = api_keys.list_keys(resolve_database_url(resolve_settings(home, sets)))
    if json:
        print_json([asdict(row) for row in rows])
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("id", "tenant", "label", "role", "reads", "writes", "limits", "state", box=None)
    for row in rows:
        limits = " ".join(f"{name}={number}" for name, number in row.limits.items())
        reads, writes = " ".join(row.reads), " ".join(row.writes)
        cells = (
            row.id[-12:],
            row.tenant,
            row.label,
            row.role,
            reads,
            writes,
            limits,
            _format_state(row),
        )
        table.add_row(*map(Text, cells))
    out().print(table)


@app.command("show")
@click.argument("key_id", help="The full id.")
@common_options
def show(key_id: str, home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """Show a key of the tenant: its rights, limits and usage.

    Example: reverie key show 019c2f6e-8d4b-7c31-9a7e-3fa9c1d20b55
    """
    from reverie.cli.app.gateway_client import create_client, quote_segment
    from reverie.cli.app.output import print_result

    response = create_client(home, sets).request("GET", f"/v1/admin/keys/{quote_segment(key_id)}")
    fields = {name: value for name, value in response.items() if value not in (None, [], {})}
    print_result(response, json, "\n".join(f"{name:12} {value}" for name, value in fields.items()))


@app.command("revoke")
@click.argument("key_id", help="The id, or its last digits.")
@common_options
def revoke(key_id: str, home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """Revoke a key; services reject it within seconds.

    Example: reverie key revoke 3fb2a91c04d7

    Exit codes: 0 ok, 4 no such key; for the others see `reverie --help`.
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform.api_keys import revoke_key

    revoke_key(resolve_database_url(resolve_settings(home, sets)), key_id)
    if json:
        print_json({"id": key_id, "revoked": True})
    else:
        out().print(f"revoked {key_id}", markup=False)


@app.command("rotate")
@click.argument("key_id", help="The id, or its last digits.")
@click.option(
    "--overlap", default="1h", help="How long the old key text stays valid: 0s, 1h or 7d."
)
@common_options
def rotate(key_id: str, overlap: str, home: Path | None, sets: tuple[str, ...], json: bool) -> None:
    """Replace the text of a key. The new text is shown only once.

    Example: reverie key rotate 3fb2a91c04d7 --overlap 24h

    Exit codes: 0 ok, 4 no such key, 6 it was revoked; for the others see `reverie --help`.
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform.api_keys import rotate_key

    seconds = parse_duration("--overlap", overlap)
    text = rotate_key(resolve_database_url(resolve_settings(home, sets)), key_id, seconds)
    if json:
        print_json({"key": text, "overlap_seconds": seconds})
    else:
        out().print(text, markup=False)


@app.command("change")
@click.argument("key_id", help="The id, or its last digits.")
@click.option("--expires", help="The expiry: 12h, 30d, 2027-01-31 or never.")
@limits_option
@common_options
def change(
    key_id: str,
    expires: str | None,
    limit: tuple[str, ...],
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Change the expiry or the limits of a key.

    Limits: requests_a_minute, requests_a_day, memories_a_day, bytes_a_day,
    llm_tokens_a_day. `--limit none` removes all limits, `--expires never` the
    expiry. The given limits replace the earlier ones.

    Example: reverie key change 3fb2a91c04d7 --limit requests_a_minute=600 --expires 90d

    Exit codes: 0 ok, 4 no such key; for the others see `reverie --help`.
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.domain.core.errors import InvalidInput
    from reverie.store.platform.api_keys import change_key

    changes: dict[str, object] = {}
    if expires is not None:
        changes["expires"] = parse_expiry(expires)
    if limit:
        changes["limits"] = parse_limits(limit)
    if not changes:
        raise InvalidInput("--limit", "give --limit or --expires")
    change_key(resolve_database_url(resolve_settings(home, sets)), key_id, changes)
    if json:
        print_json({"id": key_id, **changes})
    else:
        out().print(f"changed {key_id}", markup=False)


def parse_duration(option: str, text: str) -> float:
    """Seconds of `90s`, `15m`, `12h`, `30d`. Raises `InvalidInput`."""
    from reverie.domain.core.errors import InvalidInput

    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not number.isdecimal():
        raise InvalidInput(option, f"expected a time as 90s, 15m, 12h or 30d, not {text!r}")
    return int(number) * units[unit]


def parse_expiry(text: str | None) -> datetime | None:
    """The time of a duration from now, or of a date; None for `never`. Raises `InvalidInput`."""
    return None if text is None or text == "never" else parse_time("--expires", text, sign=1)


def parse_time(option: str, text: str, sign: int) -> datetime:
    """A date, or now plus (`sign` 1) or minus (-1) a duration. Raises `InvalidInput`."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) + sign * timedelta(seconds=parse_duration(option, text))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parse_limits(values: Sequence[str]) -> dict[str, int]:
    """The limits in `NAME=NUMBER`; no limits for `none`. Raises `InvalidInput`."""
    from reverie.cli.app.options import parse_assignments
    from reverie.domain.access.principals import LIMIT_NAMES
    from reverie.domain.core.errors import InvalidInput

    parsed = parse_assignments([value for value in values if value != "none"])
    for name, number in parsed.items():
        if name not in LIMIT_NAMES:
            raise InvalidInput("--limit", f"{name} is not one of {', '.join(LIMIT_NAMES)}")
        if not number.isdecimal() or not int(number):
            raise InvalidInput("--limit", f"{name} must be a number above 0, not {number!r}")
    return {name: int(number) for name, number in parsed.items()}


def _format_state(row: TenantApiKey) -> str:
    if row.revoked:
        return f"revoked {row.revoked:%Y-%m-%d}"
    if row.expires and row.expires <= datetime.now(UTC):
        return f"expired {row.expires:%Y-%m-%d}"
    text = f"since {row.created:%Y-%m-%d}"
    return f"{text}, until {row.expires:%Y-%m-%d}" if row.expires else text
