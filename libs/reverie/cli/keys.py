"""`reverie key`: who may use this Reverie."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.common import Home, Json, Sets, out, print_json, settings_from
from reverie.domain.access import Role

if TYPE_CHECKING:
    from reverie.store.bootstrap import KeyRow

app = typer.Typer(no_args_is_help=True, help="Create, list, rotate, limit and revoke API keys.")

Label = Annotated[str, typer.Argument(help="What the key is for.")]
RoleOption = Annotated[Role, typer.Option("--role", help="What the key may do.")]
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
    role: RoleOption = Role.WRITER,
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
    from reverie.cli.place import admin_url
    from reverie.store.bootstrap import NewKey, create_key

    settings = settings_from(home, sets)
    held = expiry(expires), limits_of(limit or [])
    new = NewKey(label, role, read or ("*",), write or ("*",), project, agent, tenant, *held)
    text = create_key(admin_url(settings), new)
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

    from reverie.cli.place import admin_url
    from reverie.store import bootstrap

    rows = bootstrap.list_keys(admin_url(settings_from(home, sets)))
    if json:
        print_json([asdict(row) for row in rows])
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("id", "tenant", "label", "role", "reads", "writes", "limits", "state", box=None)
    for row in rows:
        limits = " ".join(f"{name}={number}" for name, number in row.limits.items())
        reads, writes = " ".join(row.reads), " ".join(row.writes)
        cells = (row.id[-12:], row.tenant, row.label, row.role, reads, writes, limits, _state(row))
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
    from reverie.cli.asking import desk, part
    from reverie.cli.shown import tell

    found = desk(home, sets).ask("GET", f"/v1/admin/keys/{part(key_id)}")
    told = {name: value for name, value in found.items() if value not in (None, [], {})}
    tell(found, json, "\n".join(f"{name:12} {value}" for name, value in told.items()))


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
    from reverie.cli.place import admin_url
    from reverie.store.bootstrap import revoke_key

    revoke_key(admin_url(settings_from(home, sets)), key_id)
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
    from reverie.cli.place import admin_url
    from reverie.store.bootstrap import rotate_key

    seconds = duration("--overlap", overlap)
    text = rotate_key(admin_url(settings_from(home, sets)), key_id, seconds)
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
    llm_tokens_a_day. `--limit none` takes all away, `--expires never` the end.

    Example: [bold]reverie key change 3fb2a91c04d7 --limit requests_a_minute=600 --expires 90d[/]

    Exit codes: 0 ok, 4 no such key; the others as `reverie --help` tells.
    """
    from reverie.cli.place import admin_url
    from reverie.domain.errors import Invalid
    from reverie.store.bootstrap import change_key

    changes: dict[str, object] = {}
    if expires is not None:
        changes["expires"] = expiry(expires)
    if limit:
        changes["limits"] = limits_of(limit)
    if not changes:
        raise Invalid("--limit", "name what to change: --limit, --expires")
    change_key(admin_url(settings_from(home, sets)), key_id, changes)
    if json:
        print_json({"id": key_id, **changes})
    else:
        out().print(f"changed {key_id}", markup=False)


def duration(option: str, text: str) -> float:
    """Seconds of `90s`, `15m`, `12h`, `30d`. Raises `Invalid`."""
    from reverie.domain.errors import Invalid

    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not number.isdecimal():
        raise Invalid(option, f"expected a time as 90s, 15m, 12h or 30d, not {text!r}")
    return int(number) * units[unit]


def expiry(text: str | None) -> datetime | None:
    """The moment of `30d`, counted from now, or of a date; None for `never`. Raises `Invalid`."""
    if text is None or text == "never":
        return None
    try:
        named = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) + timedelta(seconds=duration("--expires", text))
    return named if named.tzinfo else named.replace(tzinfo=UTC)


def limits_of(asked: list[str]) -> dict[str, int]:
    """The limits of `NAME=NUMBER`; none for `none`. Raises `Invalid`."""
    from reverie.cli.common import pairs
    from reverie.domain.errors import Invalid
    from reverie.domain.limits import NAMES

    found = pairs([one for one in asked if one != "none"])
    for name, number in found.items():
        if name not in NAMES:
            raise Invalid("--limit", f"{name} is none of {', '.join(NAMES)}")
        if not number.isdecimal() or not int(number):
            raise Invalid("--limit", f"{name} must be a number above 0, not {number!r}")
    return {name: int(number) for name, number in found.items()}


def _state(row: KeyRow) -> str:
    if row.revoked:
        return f"revoked {row.revoked:%Y-%m-%d}"
    if row.expires and row.expires <= datetime.now(UTC):
        return f"expired {row.expires:%Y-%m-%d}"
    made = f"since {row.created:%Y-%m-%d}"
    return f"{made}, until {row.expires:%Y-%m-%d}" if row.expires else made
