"""`reverie key`: creates, lists, rotates, limits and revokes API keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.app.common import Home, Json, Sets, out, print_json, resolve_settings
from reverie.domain.access.principals import KeyRole

if TYPE_CHECKING:
    from reverie.store.platform.api_keys import TenantApiKey

app = typer.Typer(no_args_is_help=True, help="Create, list, rotate, limit and revoke API keys.")

Label = Annotated[str, typer.Argument(help="What the key is for.")]
RoleOption = Annotated[KeyRole, typer.Option("--role", help="What the key may do.")]
Reads = Annotated[
    list[str] | None, typer.Option("--read", help="A scope, or pattern, it may read; * is all.")
]
Writes = Annotated[
    list[str] | None, typer.Option("--write", help="A scope, or pattern, it may write; * is all.")
]
Project = Annotated[str | None, typer.Option("--project", help="Project it works on by default.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Agent that holds it.")]
Expires = Annotated[
    str | None, typer.Option("--expires", help="When it ends: 12h, 30d, or 2027-01-31; never.")
]
Limits = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=NUMBER", help="A limit; may be repeated."),
]
KeyId = Annotated[str, typer.Argument(help="The id, or its last digits.")]
Tenant = Annotated[str, typer.Option("--tenant", help="Tenant; made where it is missing.")]


@app.command()
def create(
    label: Label,
    role: RoleOption = KeyRole.WRITER,
    read: Reads = None,
    write: Writes = None,
    project: Project = None,
    agent: Agent = None,
    tenant: Tenant = "default",
    expires: Expires = None,
    limit: Limits = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Make a key. Its text is shown this once.

    Without --read and --write it may read and write everything of its tenant, as
    far as its role goes.

    Example: [bold]reverie key create ci --role ci --write 'project/shop/*'[/]
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform.api_keys import NewApiKey, create_key

    settings = resolve_settings(home, sets)
    restrictions = parse_expiry(expires), parse_limits(limit or [])
    request = NewApiKey(
        label, role, read or ("*",), write or ("*",), project, agent, tenant, *restrictions
    )
    text = create_key(resolve_database_url(settings), request)
    if json:
        print_json({"key": text, "label": label, "role": role.value, "tenant": tenant})
    else:
        out().print(text, markup=False)


@app.command("list")
def list_keys(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """All keys, without their text.

    Example: [bold]reverie key list --json[/]
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


@app.command()
def show(
    key_id: Annotated[str, typer.Argument(help="The id, in full.")],
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """A key of your tenant: what it may do, and what it used of its limits.

    Example: [bold]reverie key show 019c2f6e-8d4b-7c31-9a7e-3fa9c1d20b55[/]
    """
    from reverie.cli.app.gateway_client import create_client, quote_segment
    from reverie.cli.app.output import print_result

    response = create_client(home, sets).request("GET", f"/v1/admin/keys/{quote_segment(key_id)}")
    fields = {name: value for name, value in response.items() if value not in (None, [], {})}
    print_result(response, json, "\n".join(f"{name:12} {value}" for name, value in fields.items()))


@app.command()
def revoke(
    key_id: KeyId,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """End a key at once (services forget it within seconds).

    Example: [bold]reverie key revoke 3fb2a91c04d7[/]

    Exit codes: 0 ok, 4 no such key; the others as `reverie --help` tells.
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform.api_keys import revoke_key

    revoke_key(resolve_database_url(resolve_settings(home, sets)), key_id)
    if json:
        print_json({"id": key_id, "revoked": True})
    else:
        out().print(f"revoked {key_id}", markup=False)


@app.command()
def rotate(
    key_id: KeyId,
    overlap: Annotated[
        str, typer.Option("--overlap", help="How long the old text still works: 0s, 1h, 7d.")
    ] = "1h",
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Give a key another text, shown this once; for a while the old one works too.

    Example: [bold]reverie key rotate 3fb2a91c04d7 --overlap 24h[/]

    Exit codes: 0 ok, 4 no such key, 6 it was revoked; the others as `reverie --help` tells.
    """
    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.store.platform.api_keys import rotate_key

    seconds = parse_duration("--overlap", overlap)
    text = rotate_key(resolve_database_url(resolve_settings(home, sets)), key_id, seconds)
    if json:
        print_json({"key": text, "overlap_seconds": seconds})
    else:
        out().print(text, markup=False)


@app.command()
def change(
    key_id: KeyId,
    expires: Expires = None,
    limit: Limits = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Give a key another end, or other limits in place of those it has.

    Limits: requests_a_minute, requests_a_day, memories_a_day, bytes_a_day,
    llm_daily_tokens. `--limit none` takes all away, `--expires never` the end.

    Example: [bold]reverie key change 3fb2a91c04d7 --limit requests_a_minute=600 --expires 90d[/]

    Exit codes: 0 ok, 4 no such key; the others as `reverie --help` tells.
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
        raise InvalidInput("--limit", "name what to change: --limit, --expires")
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
    """The moment of `30d`, counted from now, or of a date;

    None for `never`. Raises `InvalidInput`.
    """
    if text is None or text == "never":
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) + timedelta(seconds=parse_duration("--expires", text))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parse_limits(values: list[str]) -> dict[str, int]:
    """The limits of `NAME=NUMBER`; none for `none`. Raises `InvalidInput`."""
    from reverie.cli.app.common import parse_assignments
    from reverie.domain.access.principals import LIMIT_NAMES
    from reverie.domain.core.errors import InvalidInput

    parsed = parse_assignments([value for value in values if value != "none"])
    for name, number in parsed.items():
        if name not in LIMIT_NAMES:
            raise InvalidInput("--limit", f"{name} is none of {', '.join(LIMIT_NAMES)}")
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
