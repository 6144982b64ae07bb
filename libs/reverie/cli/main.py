"""The `reverie` command. What a command needs is imported when it runs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import typer

from reverie.cli.commands import Commands
from reverie.cli.common import CODES, FAILED, exit_code, say
from reverie.cli.plain import take_plain_words
from reverie.domain.errors import ReverieError

app = typer.Typer(
    name="reverie",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Long-term memory for coding agents.\n\nExample: [bold]reverie up[/]",
    epilog=CODES,
)

take_plain_words()


@dataclass
class Unexpected(ReverieError):
    """{kind}: {reason} (this should not happen; REVERIE_LOG_LEVEL=debug shows where)"""

    kind: str
    reason: str


@dataclass
class Unusable(ReverieError):
    """{path}: {reason}"""

    path: str
    reason: str


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"reverie {version('reverie')}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Long-term memory for coding agents."""


def main() -> None:
    """Run the command line; an error of ours is one line on standard error."""
    if "_REVERIE_COMPLETE" in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    try:
        app()
    except ReverieError as error:
        say(error, "--json" in sys.argv)
        sys.exit(exit_code(error))
    except Exception as error:
        if os.environ.get("REVERIE_LOG_LEVEL", "").lower() == "debug":
            raise
        say(_told(error), "--json" in sys.argv)
        sys.exit(FAILED)


def _told(error: Exception) -> ReverieError:
    """A file that cannot be read or written is a person's to mend; all else is ours."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return Unusable(str(error.filename), error.strerror)
    return Unexpected(type(error).__name__, (str(error).splitlines() or [""])[0])


if __name__ == "__main__":
    main()
