"""`reverie dead`: messages that no worker could handle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from reverie.cli.common import Home, Json, Sets, out, print_json, settings_from
from reverie.domain.errors import Unavailable

if TYPE_CHECKING:
    from reverie.bus.dead import DeadLetter
    from reverie.bus.port import Bus
    from reverie.runtime.settings import Settings

T = TypeVar("T")
CONNECT_SECONDS = 5.0

app = typer.Typer(no_args_is_help=True, help="List and replay dead letters.")

Stream = Annotated[str | None, typer.Option("--stream", help="Only of this stream, as MEMORY.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
After = Annotated[int, typer.Option("--after", min=0, help="Only those after this number.")]
Number = Annotated[int | None, typer.Argument(help="Number of one letter, as listed.")]


@app.command("list")
def list_letters(
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
    from reverie.bus.dead import list_dead

    letters = on_bus(settings_from(home, sets), lambda bus: list_dead(bus, stream, limit, after))
    if json:
        print_json([_plain(letter) for letter in letters])
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("number", "when", "subject", "deliveries", "reason", box=None)
    for one in letters:
        when = f"{one.at:%Y-%m-%d %H:%M}"
        cells = (str(one.seq), when, one.subject, str(one.deliveries), one.reason)
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
    from reverie.bus import dead

    sent = on_bus(settings_from(home, sets), lambda bus: dead.replay(bus, number, stream))
    if json:
        print_json({"replayed": sent})
    else:
        out().print(f"{sent} sent again.")


def _plain(letter: DeadLetter) -> dict[str, object]:
    """A letter without its headers; its body as text."""
    fields = asdict(letter) | {"data": letter.data.decode(errors="replace")}
    return {name: value for name, value in fields.items() if name != "headers"}


def on_bus(settings: Settings, work: Callable[[Bus], Awaitable[T]]) -> T:
    """Work with the bus that is connected. Raises `Unavailable` where it is not there."""
    import asyncio

    return asyncio.run(on_bus_now(settings, work))


async def on_bus_now(settings: Settings, work: Callable[[Bus], Awaitable[T]]) -> T:
    """`on_bus` within a running loop."""
    import sys

    from reverie.bus.connection import connect
    from reverie.cli.place import bus_credentials, bus_url
    from reverie.runtime.logs import configure_logs

    # Standard output is for the answer, and how the connection goes is no news to a person.
    configure_logs(settings.model_copy(update={"log_level": "error"}), "cli", stream=sys.stderr)
    async with connect(
        bus_url(settings), "reverie-cli", credentials=bus_credentials(settings)
    ) as bus:
        if not await bus.wait_connected(CONNECT_SECONDS):
            raise Unavailable("NATS", "is it running, and is nats_url right?")
        return await work(bus)
