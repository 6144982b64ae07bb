"""`reverie review`: accepts or refuses a language model's verdicts on stale memories."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from reverie.cli.app.common import EXIT_CODES_HELP, Home, Json, Limit, Sets
from reverie.cli.app.gateway_client import create_client, quote_segment
from reverie.cli.app.output import build_table, print_result, short_id, short_id_cell, text_cell

app = typer.Typer(
    name="review",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Accept or refuse what a language model says of memories in doubt.",
    epilog=EXIT_CODES_HELP,
)

ReviewId = Annotated[str, typer.Argument(help="A review's id.")]


class ReviewState(StrEnum):
    """What became of a review."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REFUSED = "refused"


@app.command("list")
def list_reviews(
    state: Annotated[ReviewState, typer.Option("--state", help="Which.")] = ReviewState.OPEN,
    limit: Limit = 50,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Reviews; by default those that wait.

    Example: [bold]reverie review list[/]
    """
    items = create_client(home, sets).list_items("/v1/reviews", {"state": state.value}, limit)
    print_result(items, json, build_table(items, _REVIEW_COLUMNS))


_REVIEW_COLUMNS: dict[str, Any] = {
    "id": short_id_cell("id"),
    "memory": short_id_cell("memory"),
    "verdict": "verdict",
    "told": text_cell("told", 80),
    "why": text_cell("why", 120),
}


@app.command("accept")
def accept_review(id: ReviewId, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Do to the memory what a review says.

    Example: [bold]reverie review accept 019c2f6e-8d4b-7c31-9a7e-3fa9c1d20b55[/]
    """
    response = create_client(home, sets).request("POST", f"/v1/reviews/{quote_segment(id)}/accept")
    print_result(response, json, f"done to {short_id(response['memory'])}")


@app.command("refuse")
def refuse_review(id: ReviewId, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Leave the memory as it is.

    Example: [bold]reverie review refuse 019c2f6e-8d4b-7c31-9a7e-3fa9c1d20b55[/]
    """
    response = create_client(home, sets).request("POST", f"/v1/reviews/{quote_segment(id)}/refuse")
    print_result(response, json, f"{short_id(response['memory'])} stays as it is")
