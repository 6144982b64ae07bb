"""`reverie admin audit`: lists who read and changed what."""

from __future__ import annotations

from typing import Any

import click

from reverie.cli.admin.keys import parse_time
from reverie.cli.app.operator_access import run_for_tenant
from reverie.cli.app.options import CommonOptions, common_options, limit_option, tenant_option
from reverie.cli.app.output import EMPTY_MESSAGE, Columns, JsonObject, short_id


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
    options: CommonOptions, tenant: str, since: str | None, limit: int, **filters: Any
) -> None:
    """List who read and changed what, newest first.

    The setting `audit_mode` chooses what is logged.

    Example: reverie admin audit --since 24h --changes
    """
    from reverie.store.platform.audit import AuditFilter, AuditTable

    start = parse_time("--since", since, sign=-1) if since else None
    query = AuditFilter(**filters, since=start)
    settings = options.settings()
    entries = run_for_tenant(
        settings,
        tenant,
        lambda database, admin: AuditTable(database).page(admin, query, None, limit),
    )
    items = [{**vars(entry), "subjects": list(entry.subjects)} for entry in entries]
    empty = "No results: audit_mode is off." if settings.audit_mode == "off" else EMPTY_MESSAGE
    options.print_table(items, _AUDIT_COLUMNS, empty=empty)


def _format_subjects(entry: JsonObject) -> str:
    """The first subjects, with ids in their short form."""
    subjects = [
        short_id(subject) if len(subject) == 36 and subject.count("-") == 4 else subject
        for subject in entry["subjects"]
    ]
    more = f" and {len(subjects) - 4} more" if len(subjects) > 4 else ""
    return " ".join(subjects[:4]) + more


_AUDIT_COLUMNS: Columns = {
    "time": lambda entry: f"{entry['at']:%m-%d %H:%M:%S}",
    "actor": "actor",
    "action": "action",
    "answer": lambda entry: f"{entry['status']} {entry['problem'] or ''}".strip(),
    "subjects": _format_subjects,
}
