"""The `reverie` command: runs the command group and reports errors in one line."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import typer

from reverie.cli.app.commands import LazyCommandGroup
from reverie.cli.app.common import EXIT_CODES_HELP, FAILED, exit_code, print_error
from reverie.cli.app.plain_values import skip_plain_validation
from reverie.domain.core.errors import ReverieError

app = typer.Typer(
    name="reverie",
    cls=LazyCommandGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Long-term memory for coding agents.\n\nExample: [bold]reverie up[/]",
    epilog=EXIT_CODES_HELP,
)

skip_plain_validation()


@dataclass
class UnexpectedError(ReverieError):
    """{kind}: {reason} (this should not happen; REVERIE_LOG_LEVEL=debug shows where)"""

    kind: str
    reason: str


@dataclass
class UnusableFile(ReverieError):
    """{path}: {reason}"""

    path: str
    reason: str


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"reverie {version('reverie')}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Show the version and exit.",
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
        print_error(error, "--json" in sys.argv)
        sys.exit(exit_code(error))
    except Exception as error:
        if os.environ.get("REVERIE_LOG_LEVEL", "").lower() == "debug":
            raise
        print_error(_as_reverie_error(error), "--json" in sys.argv)
        sys.exit(FAILED)


def _as_reverie_error(error: Exception) -> ReverieError:
    """A file that cannot be read or written is a person's to mend; all else is ours."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return UnusableFile(str(error.filename), error.strerror)
    return UnexpectedError(type(error).__name__, (str(error).splitlines() or [""])[0])


if __name__ == "__main__":
    main()
