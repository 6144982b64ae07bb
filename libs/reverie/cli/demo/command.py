"""`reverie demo`: starts everything and plays the sample day."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.app.errors import FAILED, OK
from reverie.cli.app.options import resolve_settings, set_option
from reverie.domain.core.errors import Misconfigured

if TYPE_CHECKING:
    from reverie.cli.operate.up_display import UpDisplay
    from reverie.embedded.reporting import Addresses
    from reverie.embedded.supervision.supervisor import AfterReady
    from reverie.runtime.settings.settings import Settings


class _SampleDayPlayed(Exception):
    """The sample day is over, and Reverie should stop."""

    def __init__(self, succeeded: bool) -> None:
        super().__init__()
        self.succeeded = succeeded


@click.command("demo")
@click.argument("what", type=click.Choice(["day", "chat"]), default="day", help="What to play.")
@click.option("--once", is_flag=True, help="Stop when the sample day is over.")
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    help="The folder for the sample (default ~/.reverie-demo).",
)
@set_option
def demo(what: str, home: Path | None, once: bool, sets: tuple[str, ...]) -> None:
    """Start Reverie, play a sample day, and run until Ctrl-C.

    The day: remember, recall, conversations that a dream turns into decision records,
    an amendment that supersedes one of them, commits that decide something and make
    a memory stale, and the trace of one request.

    `chat` plays two days of three agents that talk, by a scripted model: what they
    decide on the first day is used on the second.

    The sample has a home folder of its own, ~/.reverie-demo, so your memories stay
    as they are. Each playthrough removes the one before. To remove all of it,
    delete the folder.

    Example: reverie demo --once

    Exit codes: 0 ok, 1 a component did not start or (with --once) the sample day
    failed, 2 usage.
    """
    import asyncio

    from reverie.cli.operate.up_display import UpDisplay
    from reverie.embedded.supervision.supervisor import run_supervisor

    if home is None:
        usual = resolve_settings(None, sets).home
        home = usual.with_name(f"{usual.name}-demo")
    settings = _enable_spans(resolve_settings(home, sets))
    if what == "chat":
        from reverie.cli.demo.chat_scene import enable_engine

        settings = enable_engine(settings)
    with UpDisplay() as display:
        player = _build_player(settings, display, once, what)
        try:
            asyncio.run(run_supervisor(settings, player, display))
        except _SampleDayPlayed as played:
            raise click.exceptions.Exit(OK if played.succeeded else FAILED) from None
    raise click.exceptions.Exit(OK)


def _enable_spans(settings: Settings) -> Settings:
    """Writes spans to a file, because the sample day shows a trace."""
    if settings.spans_file is not None:
        return settings
    fields = {name: getattr(settings, name) for name in settings.model_fields_set}
    spans = settings.home / "spans" / "spans.jsonl"
    return type(settings).model_validate(fields | {"spans_file": spans})


def _build_player(settings: Settings, display: UpDisplay, once: bool, what: str) -> AfterReady:
    async def play_day(addresses: Addresses) -> None:
        from reverie.cli.app.output import abbreviate_home
        from reverie.cli.demo.scenes import play_sample_day

        if addresses.api_key is None:
            raise Misconfigured(
                "REVERIE_API_KEY", "is not set: the sample day needs a key that may write"
            )
        spans = settings.spans_file.parent if settings.spans_file else None
        common = (display.console, settings.trusted_ca_file)
        if what == "chat":
            from reverie.cli.demo.chat_scene import play_chat

            succeeded = await play_chat(addresses.gateway, addresses.api_key, settings, *common)
        else:
            succeeded = await play_sample_day(addresses.gateway, addresses.api_key, spans, *common)
        shown = abbreviate_home(settings.home)
        display.console.print(
            f"The sample is in a store of its own, {shown}. To look at it with other commands:\n"
            f"  export REVERIE_HOME={shown}\n"
            f"To remove it, stop this and delete the folder: rm -r {shown}",
            markup=False,
        )
        if once:
            raise _SampleDayPlayed(succeeded)
        display.print_console_link(addresses)

    return play_day
