"""`reverie demo`: starts everything and plays the sample day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.app.common import FAILED, OK, Home, Sets, resolve_settings
from reverie.domain.core.errors import Misconfigured

if TYPE_CHECKING:
    from reverie.cli.operate.up_display import UpDisplay
    from reverie.embedded.reporting import Addresses
    from reverie.embedded.supervisor import AfterReady
    from reverie.runtime.settings.settings import Settings

Once = Annotated[bool, typer.Option("--once", help="Stop after the sample day.")]


class _SampleDayPlayed(Exception):
    """The day was played, and nothing is to stay up."""

    def __init__(self, succeeded: bool) -> None:
        super().__init__()
        self.succeeded = succeeded


def demo(home: Home = None, once: Once = False, sets: Sets = None) -> None:
    """Start everything, play a sample day on it, and stay up until Ctrl-C.

    The day: remember, recall, a conversation that a dream turns into memories,
    a commit that makes a memory stale, and the trace of one request.

    Example: [bold]reverie demo --once[/]

    Exit codes: 0 ok, 1 a part did not come up or (with --once) the day did not
    show what it should, 2 usage.
    """
    import asyncio

    from reverie.cli.operate.up_display import UpDisplay
    from reverie.embedded.supervisor import run_supervisor

    settings = _enable_spans(resolve_settings(home, sets))
    with UpDisplay() as display:
        try:
            asyncio.run(run_supervisor(settings, _build_player(settings, display, once), display))
        except _SampleDayPlayed as played:
            raise typer.Exit(OK if played.succeeded else FAILED) from None
    raise typer.Exit(OK)


def _enable_spans(settings: Settings) -> Settings:
    """Spans go to a file unless that is set already: the day ends with a trace."""
    if settings.spans_file is not None:
        return settings
    fields = {name: getattr(settings, name) for name in settings.model_fields_set}
    spans = settings.home / "spans" / "spans.jsonl"
    return type(settings).model_validate(fields | {"spans_file": spans})


def _build_player(settings: Settings, display: UpDisplay, once: bool) -> AfterReady:
    async def play_day(addresses: Addresses) -> None:
        from reverie.cli.demo import play_sample_day

        if addresses.api_key is None:
            raise Misconfigured("REVERIE_API_KEY", "the sample day needs a key that may write")
        spans = settings.spans_file.parent if settings.spans_file else None
        succeeded = await play_sample_day(
            addresses.gateway, addresses.api_key, spans, display.console, settings.trusted_ca_file
        )
        if once:
            raise _SampleDayPlayed(succeeded)

    return play_day
