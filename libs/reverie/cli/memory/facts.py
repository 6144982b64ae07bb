"""`reverie fact`: adds and lists facts with confidence, sources and verification date."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.gateway_client import create_client
from reverie.cli.app.options import common_options, limit_option, scope_option
from reverie.cli.app.output import build_table, one_line, print_result, short_id, short_id_cell

app = click.Group(
    "fact",
    help="Store facts with their confidence, sources and verification date.",
    epilog=EXIT_CODES_HELP,
)


@app.command("add")
@click.argument("topic", help="The topic.")
@click.argument("statement", help="The fact, as one statement.")
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
@click.option("--domain", "-d", multiple=True, help="A source (host or page); may be repeated.")
@click.option(
    "--reference", is_flag=True, help="Store a reference to a source instead of a lesson."
)
@scope_option
@common_options
def add_fact(
    topic: str,
    statement: str,
    confidence: str,
    verified: datetime | None,
    domain: tuple[str, ...],
    reference: bool,
    scope: str | None,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Store a fact; the same fact with a later date supersedes it.

    Example: reverie fact add postgres "18 has uuidv7()" -d postgresql.org
    """
    verified_on = (verified or datetime.now(UTC)).date().isoformat()
    body: dict[str, Any] = {"topic": topic, "claim": statement, "confidence": confidence}
    body |= {"verified": verified_on, "domains": list(domain)}
    body |= {"kind": "reference"} if reference else {}
    body |= {"scope": scope} if scope else {}
    response = create_client(home, sets).request("POST", "/v1/claims", body=body)
    print_result(
        response, json, f"{response['status']} {short_id(response['id'])} under {response['key']}"
    )


@app.command("list")
@click.option("--topic", help="Only facts on this topic.")
@scope_option
@limit_option(50)
@common_options
def list_facts(
    topic: str | None,
    scope: str | None,
    limit: int,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """List facts, newest first.

    Example: reverie fact list --topic postgres
    """
    items = create_client(home, sets).list_items(
        "/v1/claims", {"topic": topic, "scope": scope}, limit
    )
    print_result(items, json, build_table(items, _FACT_COLUMNS))


_FACT_COLUMNS: dict[str, Any] = {
    "id": short_id_cell("id"),
    "topic": lambda fact: fact["learned"]["topic"],
    "confidence": lambda fact: fact["learned"]["confidence"],
    "sources": lambda fact: fact["learned"]["corroborated"],
    "verified": lambda fact: fact["learned"]["verified"],
    "fact": lambda fact: one_line(fact["learned"]["claim"], 160),
}
