"""`reverie dead-letters`: lists, shows and replays dead letters."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.operator_access import run_on_bus
from reverie.cli.app.options import CommonOptions, common_options, limit_option
from reverie.cli.app.output import Columns, JsonObject

if TYPE_CHECKING:
    from reverie.bus.dead_letters import DeadLetter

app = click.Group(
    "dead-letters", help="List, show and replay dead letters.", epilog=EXIT_CODES_HELP
)


@app.command("list")
@click.option("--stream", help="Only letters of this stream, such as MEMORY.")
@limit_option(50, 1000)
@click.option(
    "--after", type=click.IntRange(min=0), default=0, help="Only letters after this number."
)
@common_options
def list_dead_letters(options: CommonOptions, stream: str | None, limit: int, after: int) -> None:
    """List dead letters in order, with the reason of each.

    Example: reverie dead-letters list --stream DREAM
    """
    from reverie.bus.dead_letters import list_dead_letters

    letters = run_on_bus(
        options.settings(), lambda bus: list_dead_letters(bus, stream, limit, after)
    )
    items = [_describe(letter) for letter in letters]
    options.print_table(items, _LETTER_COLUMNS, empty="No dead letters.")


@app.command("show")
@click.argument("number", type=int, help="The number of the letter.")
@common_options
def show(options: CommonOptions, number: int) -> None:
    """Show a dead letter with its body.

    Example: reverie dead-letters show 17
    """
    from reverie.bus.dead_letters import load_dead_letter

    item = _describe(run_on_bus(options.settings(), lambda bus: load_dead_letter(bus, number)))
    facts = "\n".join(f"{name}: {value}" for name, value in item.items())
    options.print_result(item, facts)


def _describe(letter: DeadLetter) -> JsonObject:
    item = asdict(letter) | {"data": letter.data.decode(errors="replace")}
    del item["headers"]
    return item


_LETTER_COLUMNS: Columns = {
    "number": "seq",
    "time": lambda letter: f"{letter['at']:%Y-%m-%d %H:%M}",
    "subject": "subject",
    "deliveries": "deliveries",
    "reason": "reason",
}


@app.command("replay")
@click.argument(
    "number", required=False, type=int, help="The number of a letter; default: all letters."
)
@click.option("--stream", help="Only letters of this stream, such as MEMORY.")
@common_options
def replay(options: CommonOptions, number: int | None, stream: str | None) -> None:
    """Send dead letters again: one, given its number, or all.

    Example: reverie dead-letters replay 17
    """
    from reverie.bus import dead_letters

    sent = run_on_bus(
        options.settings(),
        lambda bus: dead_letters.replay_dead_letters(bus, number, stream),
    )
    options.print_result({"replayed": sent}, f"{sent} letter{'' if sent == 1 else 's'} sent again.")
