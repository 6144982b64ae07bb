"""`reverie claim`: adds and lists learned facts with confidence, sources and date."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from reverie.cli.app.common import EXIT_CODES_HELP, Home, Json, Limit, Scope, Sets
from reverie.cli.app.gateway_client import create_client
from reverie.cli.app.output import build_table, one_line, print_result, short_id, short_id_cell

app = typer.Typer(
    name="claim",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Keep what was learned, with how sure it is and who says so.",
    epilog=EXIT_CODES_HELP,
)


class FactConfidence(StrEnum):
    """How sure a claim is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


Verified = Annotated[
    datetime | None,
    typer.Option(
        "--verified", formats=["%Y-%m-%d"], help="The day it was verified.", show_default="today"
    ),
]
Domains = Annotated[
    list[str] | None, typer.Option("--domain", "-d", help="A host or a page that says so.")
]
Reference = Annotated[bool, typer.Option("--reference", help="Where to find it, not a lesson.")]


@app.command("add")
def add_fact(
    topic: Annotated[str, typer.Argument(help="What it is about.")],
    claim: Annotated[str, typer.Argument(help="What holds.")],
    confidence: Annotated[
        FactConfidence, typer.Option("--confidence", help="How sure it is.")
    ] = FactConfidence.MEDIUM,
    verified: Verified = None,
    domain: Domains = None,
    reference: Reference = False,
    scope: Scope = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Keep a claim; the same one verified later supersedes it.

    Example: [bold]reverie claim add postgres "18 has uuidv7()" -d postgresql.org[/]
    """
    verified_on = (verified or datetime.now(UTC)).date().isoformat()
    body: dict[str, Any] = {"topic": topic, "claim": claim, "confidence": confidence.value}
    body |= {"verified": verified_on, "domains": domain or []}
    body |= {"kind": "reference"} if reference else {}
    body |= {"scope": scope} if scope else {}
    response = create_client(home, sets).request("POST", "/v1/claims", body=body)
    print_result(
        response, json, f"{response['status']} {short_id(response['id'])} under {response['key']}"
    )


@app.command("list")
def list_facts(
    topic: Annotated[str | None, typer.Option("--topic", help="Only about this.")] = None,
    scope: Scope = None,
    limit: Limit = 50,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Claims, newest first.

    Example: [bold]reverie claim list --topic postgres[/]
    """
    items = create_client(home, sets).list_items(
        "/v1/claims", {"topic": topic, "scope": scope}, limit
    )
    print_result(items, json, build_table(items, _FACT_COLUMNS))


_FACT_COLUMNS: dict[str, Any] = {
    "id": short_id_cell("id"),
    "topic": lambda one: one["learned"]["topic"],
    "sure": lambda one: one["learned"]["confidence"],
    "by": lambda one: one["learned"]["corroborated"],
    "verified": lambda one: one["learned"]["verified"],
    "claim": lambda one: one_line(one["learned"]["claim"], 160),
}
