"""`reverie admin audit`: who read and changed what."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.common import Home, Json, Sets, out, print_json, settings_from

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from reverie.domain.audit import Audited

Tenant = Annotated[str, typer.Option("--tenant", help="Whose.")]
Who = Annotated[str | None, typer.Option("--who", help="An agent, or a key by its id.")]
Action = Annotated[str | None, typer.Option("--action", help="Words in it, as 'DELETE' or 'keys'.")]
Subject = Annotated[str | None, typer.Option("--subject", help="An id or name it was about.")]
Changes = Annotated[
    bool | None, typer.Option("--changes/--reads", help="Only what changed something, or did not.")
]
Since = Annotated[str | None, typer.Option("--since", help="From when on: 12h, 30d, 2027-01-31.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many at most.")]


def audit(
    tenant: Tenant = "default",
    who: Who = None,
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
    from reverie.cli.operating import run_on
    from reverie.store.audit import AuditTable, Sought

    sought = Sought(who, action, subject, changes, _moment(since))
    settings = settings_from(home, sets)
    found = run_on(
        settings, tenant, lambda db, admin: AuditTable(db).page(admin, sought, None, limit)
    )
    if json:
        print_json([{**vars(one), "subjects": builtins.list(one.subjects)} for one in found])
    elif not found:
        out().print("Nothing there." if settings.audit != "off" else "Nothing: `audit` is off.")
    else:
        _show(found)


def _moment(text: str | None) -> datetime | None:
    from datetime import UTC, datetime, timedelta

    from reverie.cli.keys import duration

    if text is None:
        return None
    try:
        named = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) - timedelta(seconds=duration("--since", text))
    return named if named.tzinfo else named.replace(tzinfo=UTC)


def _show(found: Sequence[Audited]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table("at", "who", box=None)
    for column, width in (("action", 24), ("answer", 3), ("subjects", 8)):
        table.add_column(column, min_width=width, overflow="fold")
    for one in found:
        subjects = [_short(subject) for subject in one.subjects[:4]]
        more = f" and {len(one.subjects) - 4} more" if len(one.subjects) > 4 else ""
        answer = f"{one.status} {one.problem or ''}".strip()
        about = escape(" ".join(subjects)) + more
        table.add_row(f"{one.at:%m-%d %H:%M:%S}", escape(one.who), one.action, answer, about)
    out().print(table)


def _short(subject: str) -> str:
    """The last digits of an id, as ids are shown; a name as it is."""
    return subject[-8:] if len(subject) == 36 and subject.count("-") == 4 else subject
