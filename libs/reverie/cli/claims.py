"""`reverie claim`: what was learned and verified, with how sure it is."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from reverie.cli.asking import desk
from reverie.cli.common import CODES, Home, Json, Sets
from reverie.cli.options import Limit, Scope
from reverie.cli.shown import line_of, short, short_of, table, tell

app = typer.Typer(
    name="claim",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Keep what was learned, with how sure it is and who says so.",
    epilog=CODES,
)


class Sure(StrEnum):
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
def add(
    topic: Annotated[str, typer.Argument(help="What it is about.")],
    claim: Annotated[str, typer.Argument(help="What holds.")],
    sure: Annotated[Sure, typer.Option("--confidence", help="How sure it is.")] = Sure.MEDIUM,
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
    day = (verified or datetime.now(UTC)).date().isoformat()
    body: dict[str, Any] = {"topic": topic, "claim": claim, "confidence": sure.value}
    body |= {"verified": day, "domains": domain or []}
    body |= {"kind": "reference"} if reference else {}
    body |= {"scope": scope} if scope else {}
    done = desk(home, sets).ask("POST", "/v1/claims", body=body)
    tell(done, json, f"{done['status']} {short(done['id'])} under {done['key']}")


@app.command("list")
def claims(
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
    found = desk(home, sets).pages("/v1/claims", {"topic": topic, "scope": scope}, limit)
    tell(found, json, table(found, _CLAIMS))


_CLAIMS: dict[str, Any] = {
    "id": short_of("id"),
    "topic": lambda one: one["learned"]["topic"],
    "sure": lambda one: one["learned"]["confidence"],
    "by": lambda one: one["learned"]["corroborated"],
    "verified": lambda one: one["learned"]["verified"],
    "claim": lambda one: line_of(one["learned"]["claim"], 160),
}
