"""`reverie admin audit`: lists who read and changed what."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.app.common import Home, Json, Sets, out, print_json, resolve_settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from reverie.domain.access.audit import AuditEntry

Tenant = Annotated[str, typer.Option("--tenant", help="Whose.")]
Actor = Annotated[str | None, typer.Option("--who", help="An agent, or a key by its id.")]
Action = Annotated[str | None, typer.Option("--action", help="Words in it, as 'DELETE' or 'keys'.")]
Subject = Annotated[str | None, typer.Option("--subject", help="An id or name it was about.")]
Changes = Annotated[
    bool | None, typer.Option("--changes/--reads", help="Only what changed something, or did not.")
]
Since = Annotated[str | None, typer.Option("--since", help="From when on: 12h, 30d, 2027-01-31.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many at most.")]


def audit(
    tenant: Tenant = "default",
    actor: Actor = None,
    action: Action = None,
    subject: Subject = None,
    changes: Changes = None,
    since: Since = None,
    limit: Limit = 50,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Who read and changed what, newest first; the setting `audit` says what is noted.

    Example: [bold]reverie admin audit --since 24h --changes[/]
    """
    from reverie.cli.app.operator_access import run_for_tenant
    from reverie.store.platform.audit import AuditFilter, AuditTable

    filters = AuditFilter(actor, action, subject, changes, _parse_moment(since))
    settings = resolve_settings(home, sets)
    entries = run_for_tenant(
        settings,
        tenant,
        lambda database, admin: AuditTable(database).page(admin, filters, None, limit),
    )
    if json:
        print_json(
            [{**vars(entry), "subjects": builtins.list(entry.subjects)} for entry in entries]
        )
    elif not entries:
        out().print(
            "Nothing there." if settings.audit_mode != "off" else "Nothing: `audit` is off."
        )
    else:
        _print_entries(entries)


def _parse_moment(text: str | None) -> datetime | None:
    from datetime import UTC, datetime, timedelta

    from reverie.cli.admin.keys import parse_duration

    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) - timedelta(seconds=parse_duration("--since", text))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _print_entries(entries: Sequence[AuditEntry]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table("at", "who", box=None)
    for column, width in (("action", 24), ("answer", 3), ("subjects", 8)):
        table.add_column(column, min_width=width, overflow="fold")
    for entry in entries:
        subjects = [_short_id(subject) for subject in entry.subjects[:4]]
        more = f" and {len(entry.subjects) - 4} more" if len(entry.subjects) > 4 else ""
        outcome = f"{entry.status} {entry.problem or ''}".strip()
        about = escape(" ".join(subjects)) + more
        table.add_row(f"{entry.at:%m-%d %H:%M:%S}", escape(entry.who), entry.action, outcome, about)
    out().print(table)


def _short_id(subject: str) -> str:
    """The last digits of an id, as ids are shown; a name as it is."""
    return subject[-8:] if len(subject) == 36 and subject.count("-") == 4 else subject
