"""`reverie review`: accepts or rejects a language model's verdicts on stale memories."""

from __future__ import annotations

from typing import Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.options import CommonOptions, common_options, limit_option
from reverie.cli.app.output import short_id, short_id_cell, text_cell

app = click.Group(
    "review",
    help="Accept or reject a language model's verdicts on stale memories.",
    epilog=EXIT_CODES_HELP,
)


@app.command("list")
@click.option(
    "--state",
    type=click.Choice(["open", "accepted", "rejected"]),
    default="open",
    help="The state of the reviews.",
)
@limit_option(50)
@common_options
def list_reviews(options: CommonOptions, state: str, limit: int) -> None:
    """List reviews; by default those that are open.

    Example: reverie review list
    """
    items = options.gateway().list_items("/v1/reviews", {"state": state}, limit)
    options.print_table(items, _REVIEW_COLUMNS)


_REVIEW_COLUMNS: dict[str, Any] = {
    "id": short_id_cell("id"),
    "memory": short_id_cell("memory"),
    "verdict": "verdict",
    "evidence": text_cell("current_content", 80),
    "reason": text_cell("reason", 120),
}


@app.command("accept")
@click.argument("id", help="A review's id.")
@common_options
def accept_review(options: CommonOptions, id: str) -> None:
    """Apply the verdict of a review to its memory.

    Example: reverie review accept 019c2f6e-8d4b-7c31-9a7e-3fa9c1d20b55
    """
    response = options.gateway().request("POST", f"/v1/reviews/{quote_segment(id)}/accept")
    options.print_result(response, f"applied to {short_id(response['memory'])}")


@app.command("reject")
@click.argument("id", help="A review's id.")
@common_options
def reject_review(options: CommonOptions, id: str) -> None:
    """Reject the verdict of a review; its memory stays unchanged.

    Example: reverie review reject 019c2f6e-8d4b-7c31-9a7e-3fa9c1d20b55
    """
    response = options.gateway().request("POST", f"/v1/reviews/{quote_segment(id)}/reject")
    options.print_result(response, f"{short_id(response['memory'])} is unchanged")
