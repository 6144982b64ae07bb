"""`reverie dead`: lists and replays dead letters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from reverie.cli.app.common import Home, Json, Sets, out, print_json, resolve_settings
from reverie.domain.core.errors import Unavailable

if TYPE_CHECKING:
    from reverie.bus.dead_letters import DeadLetter
    from reverie.bus.interface import MessageBus
    from reverie.runtime.settings.settings import Settings

T = TypeVar("T")
CONNECT_TIMEOUT = 5.0

app = typer.Typer(no_args_is_help=True, help="List and replay dead letters.")

Stream = Annotated[str | None, typer.Option("--stream", help="Only of this stream, as MEMORY.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
After = Annotated[int, typer.Option("--after", min=0, help="Only those after this number.")]
Number = Annotated[int | None, typer.Argument(help="Number of one letter, as listed.")]


@app.command("list")
def list_dead_letters(
    stream: Stream = None,
    limit: Limit = 50,
    after: After = 0,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Dead letters in order, with the reason of each.

    Example: [bold]reverie dead list --stream DREAM[/]
    """
    from reverie.bus.dead_letters import list_dead_letters

    letters = run_on_bus(
        resolve_settings(home, sets), lambda bus: list_dead_letters(bus, stream, limit, after)
    )
    if json:
        print_json([_letter_document(letter) for letter in letters])
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("number", "when", "subject", "deliveries", "reason", box=None)
    for letter in letters:
        when = f"{letter.at:%Y-%m-%d %H:%M}"
        cells = (str(letter.seq), when, letter.subject, str(letter.deliveries), letter.reason)
        table.add_row(*map(Text, cells))
    out().print(table if letters else "No dead letters.")


@app.command()
def replay(
    number: Number = None,
    stream: Stream = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Send dead letters to where they came from: one by its number, or all.

    Example: [bold]reverie dead replay 17[/]
    """
    from reverie.bus import dead_letters

    sent = run_on_bus(
        resolve_settings(home, sets),
        lambda bus: dead_letters.replay_dead_letters(bus, number, stream),
    )
    if json:
        print_json({"replayed": sent})
    else:
        out().print(f"{sent} sent again.")


def _letter_document(letter: DeadLetter) -> dict[str, object]:
    """A letter without its headers; its body as text."""
    fields = asdict(letter) | {"data": letter.data.decode(errors="replace")}
    return {name: value for name, value in fields.items() if name != "headers"}


def run_on_bus(settings: Settings, work: Callable[[MessageBus], Awaitable[T]]) -> T:
    """Work with the bus that is connected. Raises `Unavailable` where it is not there."""
    import asyncio

    return asyncio.run(run_on_bus_async(settings, work))


async def run_on_bus_async(settings: Settings, work: Callable[[MessageBus], Awaitable[T]]) -> T:
    """`run_on_bus` within a running loop."""
    import sys

    from reverie.bus.nats_bus import connect
    from reverie.cli.app.operator_access import build_bus_credentials, resolve_bus_url
    from reverie.runtime.observability.logs import configure_logs

    # Standard output is for the answer, and how the connection goes is no news to a person.
    configure_logs(settings.model_copy(update={"log_level": "error"}), "cli", stream=sys.stderr)
    async with connect(
        resolve_bus_url(settings), "reverie-cli", credentials=build_bus_credentials(settings)
    ) as bus:
        if not await bus.wait_connected(CONNECT_TIMEOUT):
            raise Unavailable("NATS", "is it running, and is nats_url right?")
        return await work(bus)
