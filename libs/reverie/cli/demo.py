"""`reverie demo`: everything up, and a sample day played on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.common import FAILED, OK, Home, Sets, settings_from
from reverie.domain.errors import Misconfigured

if TYPE_CHECKING:
    from reverie.cli.screen import Screen
    from reverie.embedded.addresses import Addresses
    from reverie.embedded.supervisor import AfterReady
    from reverie.runtime.settings import Settings

Once = Annotated[bool, typer.Option("--once", help="Stop after the sample day.")]


class _Enough(Exception):
    """The day was played, and nothing is to stay up."""

    def __init__(self, shown: bool) -> None:
        super().__init__()
        self.shown = shown


def demo(home: Home = None, once: Once = False, sets: Sets = None) -> None:
    """Start everything, play a sample day on it, and stay up until Ctrl-C.

    The day: remember, recall, a conversation that a dream turns into memories,
    a commit that makes a memory stale, and the trace of one request.

    Example: [bold]reverie demo --once[/]

    Exit codes: 0 ok, 1 a part did not come up or (with --once) the day did not
    show what it should, 2 usage.
    """
    import asyncio

    from reverie.cli.screen import Screen
    from reverie.embedded.supervisor import run_up

    settings = _with_spans(settings_from(home, sets))
    with Screen() as screen:
        try:
            asyncio.run(run_up(settings, _player(settings, screen, once), screen))
        except _Enough as enough:
            raise typer.Exit(OK if enough.shown else FAILED) from None
    raise typer.Exit(OK)


def _with_spans(settings: Settings) -> Settings:
    """Spans go to a file unless that is set already: the day ends with a trace."""
    if settings.spans_file is not None:
        return settings
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    spans = settings.home / "spans" / "spans.jsonl"
    return type(settings).model_validate(given | {"spans_file": spans})


def _player(settings: Settings, screen: Screen, once: bool) -> AfterReady:
    async def play_day(addresses: Addresses) -> None:
        from reverie.cli.sample_day import play

        if addresses.api_key is None:
            raise Misconfigured("REVERIE_API_KEY", "the sample day needs a key that may write")
        spans = settings.spans_file.parent if settings.spans_file else None
        shown = await play(
            addresses.gateway, addresses.api_key, spans, screen.console, settings.authority
        )
        if once:
            raise _Enough(shown)

    return play_day
