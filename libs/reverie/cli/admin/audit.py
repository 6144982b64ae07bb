"""`reverie admin audit`: lists who read and changed what."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.app.options import common_options, limit_option, resolve_settings, tenant_option
from reverie.cli.app.output import out, print_json, short_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reverie.domain.access.audit import AuditEntry


@click.command("audit")
@tenant_option
@click.option("--actor", help="An agent, or the id of a key.")
@click.option("--action", help="Text that the action contains, such as 'DELETE' or 'keys'.")
@click.option("--subject", help="The id or name that the action was about.")
@click.option(
    "--changes/--reads", default=None, help="Only actions that changed something, or only reads."
)
@click.option("--since", help="The start of the period: 12h, 30d or 2027-01-31.")
@limit_option(50)
@common_options
def audit(
    tenant: str,
    actor: str | None,
    action: str | None,
    subject: str | None,
    changes: bool | None,
    since: str | None,
    limit: int,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """List who read and changed what, newest first.

    The setting `audit_mode` chooses what is logged.

    Example: reverie admin audit --since 24h --changes
    """
    from reverie.cli.admin.keys import parse_time
    from reverie.cli.app.operator_access import run_for_tenant
    from reverie.store.platform.audit import AuditFilter, AuditTable

    filters = AuditFilter(
        actor, action, subject, changes, parse_time("--since", since, sign=-1) if since else None
    )
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
            "No results." if settings.audit_mode != "off" else "No results: audit_mode is off."
        )
    else:
        _print_entries(entries)


def _print_entries(entries: Sequence[AuditEntry]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table("time", "actor", box=None)
    for column, width in (("action", 24), ("answer", 3), ("subjects", 8)):
        table.add_column(column, min_width=width, overflow="fold")
    for entry in entries:
        subjects = [_short_subject(subject) for subject in entry.subjects[:4]]
        more = f" and {len(entry.subjects) - 4} more" if len(entry.subjects) > 4 else ""
        outcome = f"{entry.status} {entry.problem or ''}".strip()
        about = escape(" ".join(subjects)) + more
        table.add_row(f"{entry.at:%m-%d %H:%M:%S}", escape(entry.who), entry.action, outcome, about)
    out().print(table)


def _short_subject(subject: str) -> str:
    """The short form of an id; a name as it is."""
    return short_id(subject) if len(subject) == 36 and subject.count("-") == 4 else subject
