"""`reverie fact`: adds and lists facts with confidence, sources and verification date."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    drop_unset,
    limit_option,
    scope_option,
)
from reverie.cli.app.output import Columns, one_line, short_id, short_id_cell

app = click.Group(
    "fact",
    help="Store facts with their confidence, sources and verification date.\n\n"
    'Example: reverie fact add postgres "18 has uuidv7()" -d postgresql.org',
    epilog=EXIT_CODES_HELP,
)


@app.command("add")
@click.argument("topic", help="The topic.")
@click.argument("statement", metavar="STATEMENT", help="The fact, as one statement.")
@click.option(
    "--confidence",
    type=click.Choice(["high", "medium", "low"]),
    default="medium",
    help="The confidence.",
)
@click.option(
    "--verified",
    type=click.DateTime(["%Y-%m-%d"]),
    show_default="today",
    help="The day of verification.",
)
@click.option(
    "--domain", "-d", "domains", multiple=True, help="A source (host or page); may be repeated."
)
@click.option(
    "--reference", is_flag=True, help="Store a reference to a source instead of a lesson."
)
@scope_option
@common_options
def add_fact(
    options: CommonOptions, verified: datetime | None, reference: bool, **fields: Any
) -> None:
    """Store a fact; the same fact with a later date supersedes it.

    Example: reverie fact add postgres "18 has uuidv7()" -d postgresql.org
    """
    verified_on = (verified or datetime.now(UTC)).date().isoformat()
    kind = "reference" if reference else None
    body = drop_unset({**fields, "verified": verified_on, "kind": kind})
    response = options.gateway().request("POST", "/v1/facts", body=body)
    message = f"{response['status']} {short_id(response['id'])} under {response['key']}"
    options.print_result(response, message)


@app.command("list")
@click.option("--topic", help="Only facts on this topic.")
@scope_option
@limit_option(50)
@common_options
def list_facts(options: CommonOptions, topic: str | None, scope: str | None, limit: int) -> None:
    """List facts, newest first.

    Example: reverie fact list --topic postgres
    """
    items = options.gateway().list_items("/v1/facts", {"topic": topic, "scope": scope}, limit)
    options.print_table(items, _FACT_COLUMNS)


_FACT_COLUMNS: Columns = {
    "id": short_id_cell("id"),
    "topic": lambda fact: fact["fact"]["topic"],
    "confidence": lambda fact: fact["fact"]["confidence"],
    "sources": lambda fact: fact["fact"]["corroborations"],
    "verified": lambda fact: fact["fact"]["verified"],
    "fact": lambda fact: one_line(fact["fact"]["statement"], 160),
}
