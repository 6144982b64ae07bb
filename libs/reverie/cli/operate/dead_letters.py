"""`reverie dead-letters`: lists and replays dead letters."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.operator_access import run_on_bus
from reverie.cli.app.options import common_options, limit_option, resolve_settings
from reverie.cli.app.output import CellSource, build_table, print_result

if TYPE_CHECKING:
    from reverie.bus.dead_letters import DeadLetter


app = click.Group("dead-letters", help="List and replay dead letters.", epilog=EXIT_CODES_HELP)


@app.command("list")
@click.option("--stream", help="Only letters of this stream, such as MEMORY.")
@limit_option(50, 1000)
@click.option(
    "--after", type=click.IntRange(min=0), default=0, help="Only letters after this number."
)
@common_options
def list_dead_letters(
    stream: str | None, limit: int, after: int, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """List dead letters in order, with the reason of each.

    Example: reverie dead-letters list --stream DREAM
    """
    from reverie.bus.dead_letters import list_dead_letters

    letters = run_on_bus(
        resolve_settings(home, sets), lambda bus: list_dead_letters(bus, stream, limit, after)
    )
    items = [_letter_document(letter) for letter in letters]
    columns: dict[str, CellSource | str] = {
        "number": "seq",
        "time": lambda letter: f"{letter['at']:%Y-%m-%d %H:%M}",
        "subject": "subject",
        "deliveries": "deliveries",
        "reason": "reason",
    }
    print_result(items, json, build_table(items, columns) if items else "No dead letters.")


@app.command("replay")
@click.argument(
    "number", required=False, type=int, help="The number of a letter; default: all letters."
)
@click.option("--stream", help="Only letters of this stream, such as MEMORY.")
@common_options
def replay(
    number: int | None, stream: str | None, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Send dead letters again: one, given its number, or all.

    Example: reverie dead-letters replay 17
    """
    from reverie.bus import dead_letters

    sent = run_on_bus(
        resolve_settings(home, sets),
        lambda bus: dead_letters.replay_dead_letters(bus, number, stream),
    )
    print_result({"replayed": sent}, json, f"{sent} letter{'' if sent == 1 else 's'} sent again.")


def _letter_document(letter: DeadLetter) -> dict[str, object]:
    """A letter without its headers, and with its body as text."""
    fields = asdict(letter) | {"data": letter.data.decode(errors="replace")}
    return {name: value for name, value in fields.items() if name != "headers"}
