"""`reverie review`: what a language model says of memories that changes put in doubt."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from reverie.cli.asking import desk, part
from reverie.cli.common import CODES, Home, Json, Sets
from reverie.cli.options import Limit
from reverie.cli.shown import clipped, short, short_of, table, tell

app = typer.Typer(
    name="review",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Accept or refuse what a language model says of memories in doubt.",
    epilog=CODES,
)

Review = Annotated[str, typer.Argument(help="A review's id.")]


class State(StrEnum):
    """What became of a review."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REFUSED = "refused"


@app.command("list")
def reviews(
    state: Annotated[State, typer.Option("--state", help="Which.")] = State.OPEN,
    limit: Limit = 50,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Reviews; by default those that wait.

    Example: [bold]reverie review list[/]
    """
    found = desk(home, sets).pages("/v1/reviews", {"state": state.value}, limit)
    tell(found, json, table(found, _REVIEWS))


_REVIEWS: dict[str, Any] = {
    "id": short_of("id"),
    "memory": short_of("memory"),
    "verdict": "verdict",
    "told": clipped("told", 80),
    "why": clipped("why", 120),
}


@app.command("accept")
def accept(id: Review, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Do to the memory what a review says.

    Example: [bold]reverie review accept 019c2f6e-8d4b-7c31-9a7e-3fa9c1d20b55[/]
    """
    done = desk(home, sets).ask("POST", f"/v1/reviews/{part(id)}/accept")
    tell(done, json, f"done to {short(done['memory'])}")


@app.command("refuse")
def refuse(id: Review, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Leave the memory as it is.

    Example: [bold]reverie review refuse 019c2f6e-8d4b-7c31-9a7e-3fa9c1d20b55[/]
    """
    done = desk(home, sets).ask("POST", f"/v1/reviews/{part(id)}/refuse")
    tell(done, json, f"{short(done['memory'])} stays as it is")
